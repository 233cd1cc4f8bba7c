/**
 * The option `workers` of `open`, read and checked.
 */
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { toMs } from '../duration.js';
import { knownOptions, shown } from '../options.js';
import { packPairs } from '../scheduler/submission.js';
import type { WorkerSettings } from './pool.js';

const OPTIONS = ['count', 'module', 'labels', 'workerData', 'execArgv', 'resourceLimits', 'blockedAfter', 'onBlocked'];
const RESOURCE_LIMITS = ['maxYoungGenerationSizeMb', 'maxOldGenerationSizeMb', 'codeRangeSizeMb', 'stackSizeMb'];
const WORKERS_MAX = 128;
const BLOCKED_AFTER_MS = 1_000;

/** @throws TypeError, RangeError */
export function readWorkerOptions(given: unknown): WorkerSettings {
  if (typeof given !== 'object' || given === null) {
    throw new TypeError(`workers must be an object with count and module, not ${shown(given)}`);
  }
  knownOptions(given, OPTIONS, 'open: workers');
  const { count, module, labels, workerData, execArgv, resourceLimits, blockedAfter, onBlocked } = given as {
    readonly [name: string]: unknown;
  };
  if (execArgv !== undefined && !(Array.isArray(execArgv) && execArgv.every((text) => typeof text === 'string'))) {
    throw new TypeError(`workers.execArgv must be an array of texts, not ${shown(execArgv)}`);
  }
  if (resourceLimits !== undefined && (typeof resourceLimits !== 'object' || resourceLimits === null)) {
    throw new TypeError(`workers.resourceLimits must be an object, not ${shown(resourceLimits)}`);
  }
  knownOptions(resourceLimits, RESOURCE_LIMITS, 'workers.resourceLimits');
  if (onBlocked !== undefined && onBlocked !== 'report' && onBlocked !== 'replace') {
    throw new RangeError(`workers.onBlocked must be 'report' or 'replace', not ${shown(onBlocked)}`);
  }
  return {
    count: readCount(count),
    module: readModule(module),
    labels: packPairs(labels, 'label'),
    workerData,
    execArgv: execArgv,
    resourceLimits: resourceLimits,
    blockedAfterMs:
      blockedAfter === undefined ? BLOCKED_AFTER_MS : Math.max(1, Math.min(toMs(blockedAfter), 0x7fffffff)),
    onBlocked: onBlocked ?? 'report',
  };
}

function readCount(count: unknown): number {
  if (count === undefined || count === 'auto') return 0;
  if (typeof count !== 'number' || !Number.isInteger(count) || count < 1 || count > WORKERS_MAX) {
    throw new RangeError(
      `workers.count must be a whole number from 1 to ${WORKERS_MAX}, or 'auto', not ${shown(count)}`,
    );
  }
  return count;
}

function readModule(module: unknown): string {
  if (module instanceof URL || Object.prototype.toString.call(module) === '[object URL]') return (module as URL).href;
  if (typeof module === 'string' && module !== '') {
    return /^[a-z][a-z0-9+.-]+:/i.test(module) && !path.isAbsolute(module)
      ? module
      : pathToFileURL(path.resolve(module)).href;
  }
  throw new TypeError(
    `workers.module must name the module whose exports are run, as a path or a URL, not ${shown(module)}`,
  );
}
