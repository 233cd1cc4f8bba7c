// What the killed processes said, and whether it holds together (LAW-1, LAW-3, LAW-7).

import { existsSync, readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';

/** All that was told about one directory. */
export class Ledger {
  violations = [];
  counts = { started: 0, signalled: 0, results: 0, warnings: 0 };
  isFinished = false;
  /** Acknowledged starts: run id by id. */
  #started = new Map();
  /** Results that were told, by id. */
  #results = new Map();
  #lastNumber = -1;
  #listed = new Map();
  #locks = [];

  /** Number of the signal that is to be sent next. */
  get nextNumber() {
    return this.#lastNumber + 1;
  }

  hear(line) {
    switch (line.tell) {
      case 'open':
        this.#listed = new Map();
        break;
      case 'run':
        this.#listed.set(line.id, line);
        if (line.result !== undefined) this.#hearResult(line.id, line.result, 'list');
        if (line.status !== 'running' && line.status !== 'completed') this.#violate(`${line.id} is ${line.status}`);
        break;
      case 'listed':
        this.#checkListed();
        break;
      case 'started':
        this.#checkRunId(line.id, line.runId);
        this.#started.set(line.id, line.runId);
        this.counts.started += 1;
        break;
      case 'signalled':
        this.#lastNumber = line.number;
        this.counts.signalled += 1;
        break;
      case 'result':
        this.#hearResult(line.id, line.result, 'result');
        break;
      case 'locked':
        this.#locks.push(line);
        break;
      case 'warning':
        this.#violate(`a warning: ${line.message} ${line.error ?? ''}`);
        break;
      case 'open at the end':
        this.#violate(`${line.id} did not end: ${JSON.stringify(line.why)}`);
        break;
      case 'finished':
        this.isFinished = true;
        break;
      default:
        this.#violate(`an unknown line: ${JSON.stringify(line)}`);
    }
  }

  /** After the last process: numbers, locks, effects. @param holder pid of the process that had the directory */
  conclude(life, effectsPath, holder) {
    if (!this.isFinished) this.#violate('the last process did not finish');
    const numbers = this.#results.get(`collector-${life}`);
    const sent = Array.from({ length: this.#lastNumber + 1 }, (_, index) => index);
    // The one that was under way at the last kill was either recorded or not.
    if (!isDeepStrictEqual(numbers, sent) && !isDeepStrictEqual(numbers, [...sent, sent.length])) {
      this.#violate(`signals 0 to ${this.#lastNumber} were acknowledged in this order, and arrived: ${numbers}`);
    }
    this.#checkLocks(holder);
    this.#checkEffects(effectsPath);
  }

  /** What was acknowledged is there after every kill. */
  #checkListed() {
    for (const [id, runId] of this.#started) {
      const run = this.#listed.get(id);
      if (run === undefined) this.#violate(`${id} was acknowledged and is lost`);
      else if (run.runId !== runId) this.#violate(`${id} was acknowledged as ${runId} and is ${run.runId}`);
    }
    for (const id of this.#results.keys()) {
      const run = this.#listed.get(id);
      if (run?.status !== 'completed') this.#violate(`${id} had ended, and is ${run?.status ?? 'lost'}`);
    }
  }

  #checkRunId(id, runId) {
    const before = this.#started.get(id);
    if (before !== undefined && before !== runId) this.#violate(`${id} is ${before} and ${runId}`);
  }

  #hearResult(id, result, from) {
    if (!this.#results.has(id)) {
      this.#results.set(id, result);
      this.counts.results += 1;
    } else if (!isDeepStrictEqual(this.#results.get(id), result)) {
      const before = JSON.stringify(this.#results.get(id));
      this.#violate(`the result of ${id} was ${before} and is by ${from} ${JSON.stringify(result)}`);
    }
  }

  #checkLocks(holder) {
    for (const where of ['another process', 'the same process']) {
      const lock = this.#locks.find((line) => line.where === where);
      if (lock === undefined) this.#violate(`nobody tried to open the directory from ${where}`);
      else if (lock.isOpen) this.#violate(`${where} could open the directory a second time`);
      else if (lock.name !== 'DirectoryLockedError') this.#violate(`${where} got ${lock.name}: ${lock.message}`);
      else if (!lock.message.includes(String(holder))) this.#violate(`no pid ${holder} in: ${lock.message}`);
    }
  }

  /** One result a step, one key a step: whatever a body or an end saw of a step is the same. */
  #checkEffects(path) {
    const values = new Map();
    const keys = new Map();
    const seen = (map, run, index, value, what) => {
      const step = `${run} step ${index}`;
      const before = map.get(step);
      if (before === undefined) map.set(step, value);
      else if (before !== value) this.#violate(`${what} of ${step} is ${before} and ${value}`);
    };
    const lines = existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : [];
    const drawn = new Set();
    for (const { run, index, before, key, value } of lines.map((line) => JSON.parse(line))) {
      drawn.add(value);
      seen(keys, run, index, key, 'the idempotency key');
      before.forEach((result, at) => seen(values, run, at, result, 'the result'));
    }
    for (const [run, result] of this.#results) {
      if (run.startsWith('collector')) continue;
      const drawnHere = result.filter((value) => value.length === 36);
      for (const value of drawnHere) if (!drawn.has(value)) this.#violate(`${run} has a result that no body drew`);
      if (!run.startsWith('family')) drawnHere.forEach((value, index) => seen(values, run, index, value, 'the result'));
    }
    this.counts.bodies = lines.length;
    this.counts.bodiesAgain = lines.length - keys.size;
  }

  #violate(message) {
    this.violations.push(message);
  }
}
