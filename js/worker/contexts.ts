/**
 * Async contexts: the root one, in which workflow functions run, and the mark that tells whose code is running.
 *
 * A caller's `AsyncLocalStorage` must not leak into a run: its replay has no caller. What the workflow or a step sets
 * itself is kept, since Node.js carries it along with promises. The mark exists in development only: it costs half a
 * microsecond a step.
 */
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import type { Attempt } from './attempt.js';
import type { StepScope } from '../workflow/host.js';
import type { Run } from '../workflow/run.js';

/** Whose code runs: a workflow's function, or the body of one of its steps. */
export type Mark = Run | Attempt;

const root = new AsyncResource('fusee', { requireManualDestroy: true });
const marks = new AsyncLocalStorage<Mark>();
const MANUAL = { requireManualDestroy: true };
let markers = 0;

/** Runs `fn` in the context that was there when this module was loaded. */
export function inRoot<Args extends unknown[], Result>(fn: (...args: Args) => Result, ...args: Args): Result {
  return root.runInAsyncScope(fn, undefined, ...args);
}

const scopes = new AsyncLocalStorage<object>();

/** Runs `fn` and everything that follows from it in a scope. Async hooks are on from the first one of the process on. */
export function inScope<Argument>(scope: object, fn: (argument: Argument) => unknown, argument: Argument): unknown {
  return scopes.run(scope, fn, argument);
}

/** The scope that the caller belongs to. */
export function currentScope(): object | undefined {
  return scopes.getStore();
}

/** The context of the caller. */
export function captureContext(): StepScope {
  return new AsyncResource('fusee.step', MANUAL) as unknown as StepScope;
}

/** Runs `fn` and everything that follows from it under a mark. */
export function marked<Args extends unknown[], Result>(
  mark: Mark,
  fn: (...args: Args) => Result,
  ...args: Args
): Result {
  return marks.run(mark, fn, ...args);
}

/** Whose code the caller is; `undefined` outside, and where marks are off. */
export function currentMark(): Mark | undefined {
  return markers === 0 ? undefined : marks.getStore();
}

/** Turns marks on, until {@link releaseMarks}. */
export function useMarks(): void {
  markers += 1;
}

/** Undoes {@link useMarks}; the last one gives back what marks cost. */
export function releaseMarks(): void {
  markers -= 1;
  if (markers === 0) marks.disable();
}
