/**
 * Runs as files: asking for one.
 */
import { knownOptions, shown } from '../options.js';
import type { EngineCore } from './core.js';

/** Where the records of a run end early. */
export interface Cut {
  /** Name of a step; empty: none. */
  readonly step: string;
  /** Number of an operation; 0: none. */
  readonly operation: number;
}

/** Reads the option `toStep`: the first step that is left out. @throws TypeError, RangeError */
export function readCut(toStep: unknown, verb: string): Cut {
  if (toStep === undefined) return { step: '', operation: 0 };
  if (typeof toStep === 'string' && toStep !== '') return { step: toStep, operation: 0 };
  if (typeof toStep === 'number' && Number.isInteger(toStep) && toStep >= 1 && toStep <= 0xffffffff) {
    return { step: '', operation: toStep };
  }
  throw new TypeError(
    `the option toStep of ${verb} must be the name of a step or the number of an operation, not ${shown(toStep)}`,
  );
}

/** The bytes of a file with the records of a run, up to the last durable one. */
export async function exportRun(
  core: EngineCore,
  id: string,
  runId: string,
  options: { readonly toStep?: unknown } | undefined,
): Promise<Uint8Array> {
  knownOptions(options, ['toStep'], 'handle.export');
  const { step, operation } = readCut(options?.toStep, 'handle.export');
  return core.request((token) => core.native.exportRun(token, id, runId, step, operation), bytesOf).promise;
}

/** Bytes come as hexadecimal digits. */
export function bytesOf(hex: string): Uint8Array {
  return Buffer.from(hex, 'hex');
}
