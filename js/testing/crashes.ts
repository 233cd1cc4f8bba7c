/**
 * A workflow run again and again, each time with a crash at another place.
 *
 * A crash may come after every record: those before it are kept, nothing that rests on later ones has happened. And it
 * may come when the record that follows was made but not yet durable: then the step that it tells of has run, and runs
 * again.
 */
import { AssertionError } from 'node:assert';
import { asWorkflow, signalName } from '../definitions.js';
import { toMs } from '../duration.js';
import { RunNotFoundError } from '../errors.js';
import { knownOptions } from '../options.js';
import { testEngine, type TestEngine, type TestOptions } from './engine.js';

/** How a run ended. */
type Outcome = { readonly status: string; readonly result?: unknown; readonly error?: unknown };

interface Script {
  readonly workflow: unknown;
  readonly input?: unknown;
  readonly signals?: readonly { readonly signal: unknown; readonly value?: unknown; readonly at?: unknown }[];
  readonly options?: TestOptions;
}

/** Where a life is cut: as soon as one record is durable, with those up to another one kept. */
interface Crash {
  readonly at: number;
  readonly kept: number;
}

const ID = 'crash-everywhere';
/** Signals of the script have dedupe ids that begin so: the workflow may get others. */
const SCRIPTED = 'scripted-';

/** Runs a workflow with a crash at every place. @returns how many crashes were tried */
export async function crashEverywhere(
  script: Script,
  check: { readonly expect: (outcome: Outcome) => unknown },
): Promise<{ readonly crashes: number }> {
  knownOptions(script, ['workflow', 'input', 'signals', 'options'], 'crashEverywhere');
  asWorkflow(script.workflow);
  for (const scripted of script.signals ?? []) {
    knownOptions(scripted, ['signal', 'value', 'at'], 'a signal of crashEverywhere');
    const { signal, at } = scripted;
    signalName(signal);
    if (at !== undefined) toMs(at);
  }
  knownOptions(check, ['expect'], 'the check of crashEverywhere');
  if (typeof check?.expect !== 'function') throw new TypeError('crashEverywhere needs a function { expect }');

  const plain = await new Life(script, null).live();
  await check.expect(plain.outcome);
  let crashes = 0;
  for (const crash of crashesWithin(plain)) {
    const { outcome } = await new Life(script, crash).live();
    crashes += 1;
    try {
      await check.expect(outcome);
    } catch (cause) {
      const { at, kept } = crash;
      const lost = at > kept ? ', whose successor was made and lost' : '';
      throw new AssertionError({
        message: `after a crash behind record ${kept}${lost}: ${String((cause as Error)?.message ?? cause)}`,
        actual: outcome,
        expected: plain.outcome,
        operator: 'crashEverywhere',
      });
    }
  }
  return { crashes };
}

function* crashesWithin({ first, records }: Lived): Iterable<Crash> {
  for (let kept = first; kept < records; kept += 1) {
    yield { at: kept, kept };
    yield { at: kept + 1, kept };
  }
}

interface Lived {
  readonly outcome: Outcome;
  /** Records before the run's own. */
  readonly first: number;
  readonly records: number;
}

/** One execution from the start to the end, with one crash at most. */
class Life {
  private engine!: TestEngine;
  private signalsSent = 0;
  private startedMs = -1;
  /** The engine did not take what was asked for. */
  private refusal: Error | undefined = undefined;

  constructor(
    private readonly script: Script,
    private crash: Crash | null,
  ) {}

  async live(): Promise<Lived> {
    const { workflow, options = {} } = this.script;
    const workflows = [...new Set([workflow, ...(options.workflows ?? [])])];
    const replayOnClose = this.crash === null && options.replayOnClose !== false;
    this.engine = await testEngine({ ...options, workflows, replayOnClose });
    try {
      await this.engine.settle();
      const first = this.engine.durable;
      if (this.crash !== null) this.engine.haltAt(this.crash.at);
      while (!(await this.hasEnded())) await this.goOn();
      const outcome = await this.outcome();
      return { outcome, first, records: this.engine.durable };
    } finally {
      await this.engine.close();
    }
  }

  /** Does the next thing that happens from outside: a start, a signal, the passing of time. */
  private async goOn(): Promise<void> {
    const { engine, script } = this;
    if (this.startedMs < 0) {
      this.startedMs = engine.now();
      this.send(() => engine.start(script.workflow, script.input, { id: ID }));
      return;
    }
    const signal = script.signals?.[this.signalsSent];
    const signalMs = signal === undefined ? Infinity : this.startedMs + toMs(signal.at ?? 0);
    if (signal !== undefined && signalMs <= engine.now()) {
      const dedupeId = `${SCRIPTED}${this.signalsSent}`;
      this.signalsSent += 1;
      this.send(() => engine.handle(script.workflow, ID).signal(signal.signal, signal.value, { dedupeId }));
      return;
    }
    const dueMs = engine.nextDue();
    const nextMs = Math.min(signalMs, dueMs < 0 ? Infinity : dueMs);
    if (nextMs === Infinity) throw new Error(await this.whyNotOver());
    await engine.moveTo(Math.max(nextMs, engine.now()));
  }

  /** What is asked for may get no answer, when the crash comes first. */
  private send(ask: () => Promise<unknown>): void {
    ask().catch((error: unknown) => {
      if (this.crash !== null || this.refusal !== undefined) return;
      this.refusal = error as Error;
    });
  }

  /** Lets everything go as far as it goes by itself, through the crash if it comes. */
  private async hasEnded(): Promise<boolean> {
    const { engine } = this;
    do await engine.settle();
    while (!engine.isHalted && engine.hasRunningBodies && engine.nextDue() < 0);
    if (engine.isHalted) await this.crashNow();
    if (this.refusal !== undefined && this.crash === null) throw this.refusal;
    if (this.startedMs < 0) return false;
    const row = await this.row();
    if (row?.stuck === true) throw new Error(await this.whyNotOver());
    return row !== null && row.status !== 'running';
  }

  private async crashNow(): Promise<void> {
    const { engine } = this;
    const { kept } = this.crash!;
    this.signalsSent = await engine.crashTo(kept, SCRIPTED);
    this.crash = null;
    if ((await this.row()) === null) this.startedMs = -1;
  }

  private async whyNotOver(): Promise<string> {
    const why = JSON.stringify(await this.engine.explain(ID));
    return `the workflow does not end: no timer is set, no signal is left, and it stands at ${why}`;
  }

  private async row(): Promise<{ readonly status: string; readonly stuck: boolean } | null> {
    try {
      return await this.engine.handle(this.script.workflow, ID).describe();
    } catch (error) {
      if (error instanceof RunNotFoundError) return null;
      throw error;
    }
  }

  private async outcome(): Promise<Outcome> {
    const handle = this.engine.handle(this.script.workflow, ID);
    const { status } = await handle.describe();
    try {
      return { status, result: await handle.result() };
    } catch (error) {
      return { status, error };
    }
  }
}
