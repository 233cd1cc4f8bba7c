// The process that gets killed. It tells the parent, line by line, what it found and what was acknowledged to it.
//
// work: starts workflows and sends signals until it is killed. finish: starts nothing more, and ends when all have ended.
// probe: tries to open a directory that another process has.

import { writeSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { open } from 'fusee';
import { chained, collector, family, LAST, number, parallel, timed, workflows } from './workflows.mjs';

const [mode, dir, life, nextNumber] = process.argv.slice(2);
const LANES = 5;
const inputs = { chained: 6, parallel: 5, timed: undefined, family: 3 };
const kinds = [chained, parallel, timed, family];
const quiet = { debug() {}, info() {}, warn: say, error: say };

/** Written at once: what was told before a kill has been told. */
function tell(what) {
  writeSync(1, `${JSON.stringify(what)}\n`);
}

function say(message, fields) {
  tell({ tell: 'warning', message, error: fields?.error?.stack });
}

async function refusal() {
  try {
    await (await open(dir, { workflows, logger: quiet })).close();
    return { isOpen: true };
  } catch ({ name, code, message }) {
    return { isOpen: false, name, code, message };
  }
}

if (mode === 'probe') {
  tell({ tell: 'locked', where: 'another process', ...(await refusal()) });
} else {
  const engine = await open(dir, { workflows, dev: false, logger: quiet });
  tell({ tell: 'open' });
  const open_ = await listAll(engine);
  for (const id of open_) void report(engine.handle(id));
  if (mode === 'work') await work(engine);
  else await finish(engine);
}

/** Tells of every run. @returns ids of those that have not ended, the collector's aside */
async function listAll(engine) {
  const going = [];
  for await (const { id, runId, type, status } of engine.list({ order: 'oldestFirst' })) {
    const result = status === 'completed' ? await engine.handle(id, { runId }).result() : undefined;
    tell({ tell: 'run', id, runId, type, status, result });
    if (status === 'running' && type !== 'collector') going.push(id);
  }
  tell({ tell: 'listed' });
  return going;
}

async function report(handle) {
  tell({ tell: 'result', id: handle.id, result: await handle.result() });
}

async function work(engine) {
  void sendNumbers(engine);
  await Promise.all(Array.from({ length: LANES }, (_, lane) => startMany(engine, lane)));
}

async function startMany(engine, lane) {
  for (let count = 0; ; count += 1) {
    const kind = kinds[(lane + count) % kinds.length];
    const id = `${kind.name}-${process.pid}-${lane}-${count}`;
    const handle = await engine.start(kind, inputs[kind.name], { id });
    tell({ tell: 'started', id, runId: handle.runId });
    await report(handle);
    await setTimeout(Math.random() * 10);
  }
}

/** The number that was under way at a kill is sent again under its old id. */
async function sendNumbers(engine) {
  const handle = await engine.start(collector, undefined, { id: `collector-${life}` });
  tell({ tell: 'started', id: handle.id, runId: handle.runId });
  for (let next = Number(nextNumber); ; next += 1) {
    await handle.signal(number, next, { dedupeId: String(next) });
    tell({ tell: 'signalled', number: next });
    await setTimeout(Math.random() * 4);
  }
}

async function finish(engine) {
  tell({ tell: 'locked', where: 'the same process', ...(await refusal()) });
  const handle = await engine.start(collector, undefined, { id: `collector-${life}` });
  await handle.signal(number, LAST, { dedupeId: 'last' });
  await report(handle);
  const until = Date.now() + 20_000;
  while ((await engine.count({ status: 'running' })) > 0 && Date.now() < until) await setTimeout(5);
  for await (const { id } of engine.list({ status: 'running' })) {
    tell({ tell: 'open at the end', id, why: await engine.explain(id) });
  }
  await listAll(engine);
  tell({ tell: 'finished' });
  // The parent has another process try to get in first.
  await new Promise((resolve) => process.stdin.once('end', resolve).resume());
  await engine.close();
}
