/**
 * `fusee/testing`: the real engine in memory, under a clock that you move.
 *
 * @packageDocumentation
 */
import type { AnyWorkflow, Duration, Engine, InputOf, MaybePromise, OpenOptions, OutputOf, Time } from './index.js';

/** Options of {@link testEngine}: those of `open`, except what an engine in memory has no use for. */
export interface TestOptions extends Omit<OpenOptions, 'shards' | 'flush'> {
  /** Where the clock stands at first. Default: 2025-01-01T00:00:00Z, so that tests repeat. */
  now?: Time;
  /** Seed of everything left to chance. Default 1. */
  seed?: number;
}

/**
 * Opens an engine in memory under a virtual clock. Nothing stays open after `close`; works under fake timers.
 * @throws as `open`
 */
export function testEngine(options?: TestOptions): Promise<TestEngine>;

/** An engine whose clock moves only by {@link TestEngine.advance}. */
export interface TestEngine extends Engine {
  /** Time of the virtual clock, in milliseconds since 1970. */
  now(): number;
  /** Moves the clock, firing what falls due in its order, and waits until the engine is idle again. */
  advance(by: Duration): Promise<void>;
  /** Waits until nothing can go on without the clock or someone outside. */
  idle(): Promise<void>;
  /**
   * Runs `fn` in place of a step's function, for runs of this workflow from now on. Retries and timeouts still apply.
   * The step's result type cannot be known from its name: give `fn` a return annotation if it matters.
   * @returns a function that undoes it
   */
  mockStep(workflow: AnyWorkflow, step: string, fn: (attempt: number) => unknown): () => void;
  /**
   * Runs `fn` in place of a workflow's function, from now on. It gets the input as it was recorded.
   * @returns a function that undoes it
   */
  mock<W extends AnyWorkflow>(workflow: W, fn: (input: InputOf<W>) => MaybePromise<OutputOf<W>>): () => void;
  /** Loses everything that was not durable, as `kill -9` would, and opens again. Handles stay good. */
  crash(): Promise<void>;
}

export {};
