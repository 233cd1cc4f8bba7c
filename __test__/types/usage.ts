// A type test: it compiles, or the surface has changed. It is never run.
import type { StandardSchemaV1 } from '@standard-schema/spec';
import {
  duration,
  open,
  query,
  signal,
  update,
  workerEngine,
  workflow,
  CancelledError,
  FuseeError,
  NonRetryableError,
  RetryableError,
  StepError,
} from 'fusee';
import type {
  AttributeValue,
  ChildHandle,
  Engine,
  Explanation,
  HistoryKind,
  StuckReport,
  OutputOf,
  RunRow,
  Workflow,
  WorkflowContext,
  WorkflowHandle,
} from 'fusee';
import { check, crashEverywhere, replay, testEngine } from 'fusee/testing';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** Compiles only if `value` has exactly the type `Expected`. */
declare function is<Expected>(): <Actual>(
  value: Actual,
  ...same: Equal<Actual, Expected> extends true ? [] : [never]
) => void;

interface Order {
  id: string;
  email: string;
}
declare const pay: {
  charge(o: Order, options: { idempotencyKey: string; signal: AbortSignal }): Promise<{ id: string }>;
};
declare const qty: StandardSchemaV1<{ qty: string }, { qty: number }>;

export const review = signal<boolean>('review');
export const ping = signal('ping');
export const sized = signal('sized', qty);
export const status = query<string>('status');
export const item = query<number, string>('item');
export const setQty = update<{ qty: number }, number>('set-qty');
export const poke = update('poke');
export const parsedUpdate = update('parsed', qty);
export const answered = update('answered', qty, qty);

is<Workflow<void, void>>()(workflow('w', () => {}));
export const nothing = workflow('nothing', async (ctx) => {
  await ctx.sleep('1s');
  return 7;
});
is<Workflow<void, number>>()(nothing);
export const maybe = workflow('maybe', async (_ctx, n?: number) => n ?? 0);
is<Workflow<number | undefined, number>>()(maybe);
const parsed = workflow(
  'parsed',
  async (ctx, o) => {
    is<{ qty: number }>()(o);
    return ctx.info.id;
  },
  { input: qty, version: 2, timeout: '1d', onMismatch: 'fail' },
);
is<Workflow<{ qty: string }, string>>()(parsed);
// @ts-expect-error not a duration
workflow('bad', () => 1, { timeout: '5 parsecs' });

export const checkout = workflow('checkout', async (ctx, order: Order) => {
  const charge = await ctx.step(
    'charge',
    (s) => pay.charge(order, { idempotencyKey: s.idempotencyKey, signal: s.signal }),
    {
      retry: {
        maxAttempts: 5,
        initialInterval: '1s',
        backoff: 2,
        maxInterval: '1m',
        shouldRetry: (e) => e instanceof Error,
      },
      timeout: '30s',
      heartbeatTimeout: '5s',
      semantics: 'atMostOnce',
    },
  );
  is<{ id: string }>()(charge);
  await ctx.step('s', (s) => {
    s.heartbeat({ at: 1 });
    is<unknown>()(s.lastHeartbeat);
    is<number>()(s.attempt);
  });
  is<boolean>()(await ctx.waitFor(review));
  is<boolean | 'late'>()(await ctx.waitFor(review, { timeout: '1d', orElse: 'late' }));
  is<boolean | undefined>()(await ctx.waitFor(review, { timeout: '1d' }));
  is<void>()(await ctx.waitFor(ping));
  const approval = ctx.awakeable<{ by: string }>({ timeout: '7d' });
  is<string>()(approval.token);
  is<{ by: string }>()(await approval.promise);
  is<Promise<unknown>>()(ctx.awakeable().promise);
  // @ts-expect-error -- a duration
  ctx.awakeable({ timeout: true });
  is<{ qty: number }>()(await ctx.waitFor(sized));
  for await (const v of ctx.signals(review)) {
    is<boolean>()(v);
    break;
  }
  ctx.onQuery(status, () => 'fine');
  ctx.onQuery(item, (n) => n.toFixed());
  // @ts-expect-error a query answers at once
  ctx.onQuery(status, async () => 'fine');
  ctx.onUpdate(setQty, async ({ qty: n }) => n, { validate: ({ qty: n }) => is<number>()(n) });
  ctx.onUpdate(parsedUpdate, (value) => is<{ qty: number }>()(value));
  ctx.onUpdate(poke, () => {});
  // @ts-expect-error another answer
  ctx.onUpdate(setQty, () => 'no');
  ctx.onSignal(sized, async (value) => is<{ qty: number }>()(value));
  is<void>()(await ctx.condition(() => true));
  is<boolean>()(await ctx.condition(() => true, { timeout: { hours: 1 } }));
  await ctx.sleep('1h30m');
  await ctx.sleep(250);
  await ctx.sleepUntil(new Date(ctx.now()));
  is<number>()(await ctx.run(nothing));
  is<number>()(await ctx.run(maybe, 1, { id: 'c', onParentClose: 'abandon' }));
  // @ts-expect-error an input is needed
  await ctx.run(parsed);
  const child = await ctx.start(parsed, { qty: '1' });
  is<ChildHandle<string>>()(child);
  await child.signal(review, true);
  await child.signal(ping);
  // @ts-expect-error a value is needed
  await child.signal(review);
  is<string>()(await child.result());
  is<number>()(
    await ctx.scope(
      async (scope) => {
        scope.signal.throwIfAborted();
        scope.cancel('why');
        return 1;
      },
      { cancellable: false, timeout: '1m' },
    ),
  );
  await ctx.step('undone', () => 'x', { compensate: (result, step) => void [is<string>()(result), step.attempt] });
  if (order.id === 'next') return ctx.continueAsNew({ id: '2', email: '' }, { version: 2, timeout: '1d' });
  // @ts-expect-error an input is needed
  if (order.id === 'none') return ctx.continueAsNew();
  const other = ctx.handle(parsed, 'id');
  await other.cancel('why');
  is<number>()(ctx.random('dice'));
  is<string>()(ctx.uuid());
  is<number>()(ctx.version);
  ctx.setAttributes({ customer: 7, total: 10n, tags: ['a'], old: null, none: undefined });
  is<boolean>()(ctx.patched('tax'));
  ctx.deprecatePatch('tax');
  ctx.signal.throwIfAborted();
  ctx.log.info('x', { y: 1 });
  const { id, runId, type, attempt, version, replaying, startedAt, shuttingDown } = ctx.info;
  void [id, runId, type, attempt, version, replaying, startedAt, shuttingDown];
  if (order.id === '') throw new NonRetryableError('empty', { cause: order });
  if (order.id === 'x') throw new RetryableError('later', { retryAfter: '1m' });
  return charge.id;
});
is<Workflow<Order, string>>()(checkout);
const helper = async (ctx: WorkflowContext): Promise<number> => ctx.run(nothing);
export const usesHelper = workflow('uses-helper', helper);
export const recursive = workflow('recursive', async (ctx, n: number): Promise<number> =>
  n === 0 ? 0 : ctx.run(recursive, n - 1),
);
is<string>()('' as OutputOf<typeof checkout>);

export async function use(): Promise<void> {
  const engine: Engine = await open('./data', {
    workflows: [checkout, parsed],
    flush: 'auto',
    dev: true,
    payloadBytesMax: 1000,
  });
  await open({ dir: ':memory:' });
  // @ts-expect-error a directory is needed
  await open({ workflows: [] });
  const run = await engine.start(
    checkout,
    { id: '1', email: '' },
    { id: '1', idReusePolicy: 'rejectDuplicate', actor: 'me' },
  );
  is<WorkflowHandle<string>>()(run);
  is<string>()(await engine.execute(checkout, { id: '1', email: '' }, { signal: AbortSignal.timeout(5) }));
  is<number>()(await engine.execute(nothing));
  // @ts-expect-error not a checkout's input
  await engine.start(checkout, { id: 1 });
  is<string>()(await run.result({ timeout: '1m' }));
  await run.signal(review, true, { dedupeId: 'r1' });
  await run.signal(ping);
  is<string>()(await run.query(status));
  is<string>()(await run.query(item, 3));
  is<number>()(await run.update(setQty, { qty: 1 }, { id: 'u1', actor: 'me', timeout: '1m' }));
  is<void>()(await run.update(poke));
  is<unknown>()(await run.update(parsedUpdate, { qty: '1' }));
  is<{ qty: number }>()(await run.update(answered, { qty: '1' }));
  // @ts-expect-error an argument is needed
  await run.update(setQty);
  is<WorkflowHandle<number>>()(await engine.signalWithStart(nothing, { id: 'n', signal: ping }));
  // @ts-expect-error the signal needs a value
  await engine.signalWithStart(nothing, { id: 'n', signal: review });
  const joined = await engine.updateWithStart(parsed, {
    id: 'p',
    input: { qty: '1' },
    update: setQty,
    value: { qty: 2 },
  });
  is<WorkflowHandle<string>>()(joined.handle);
  is<number>()(await joined.answer);
  is<boolean>()(await engine.complete('token', { by: 'ann' }, { actor: 'me' }));
  is<boolean>()(await engine.fail('token', new Error('no')));
  // @ts-expect-error -- an error is needed
  await engine.fail('token');
  await run.cancel('why', { actor: 'me' });
  await run.terminate();
  await run.pause({ actor: 'me' });
  await run.wake({ actor: 'me' });
  await run.resume();
  is<WorkflowHandle<string>>()(
    await run.reset({ toStep: 'charge', reapplySignals: true, version: 2, freshKeys: false }),
  );
  is<WorkflowHandle<string>>()(await run.fork({ toStep: 3, id: 'other', version: 2, actor: 'me' }));
  is<WorkflowHandle<string>>()(await run.retry({ actor: 'me' }));
  is<WorkflowHandle<string>>()(await run.retry());
  // @ts-expect-error -- the place is needed
  await run.reset({ version: 2 });
  // @ts-expect-error -- a fork has keys of its own
  await run.fork({ toStep: 'charge', freshKeys: true });
  for await (const record of run.history()) is<HistoryKind>()(record.kind);
  for await (const row of engine.list({
    attributes: {
      customer: 7,
      total: { gte: 100, lt: 200n },
      tag: { prefix: 'a' },
      at: new Date(),
      old: { exists: false },
    },
    and: [{ status: 'running' }],
    or: [{ type: checkout }, { not: { idPrefix: 'x' } }],
  })) {
    is<AttributeValue | undefined>()(row.attributes['customer']);
  }
  const page = await engine.listPage({ status: 'failed', limit: 10, cursor: undefined });
  is<string | undefined>()(page.cursor);
  // @ts-expect-error no such test
  engine.list({ attributes: { total: { above: 1 } } });
  // @ts-expect-error an object is no value
  await engine.start(checkout, order, { attributes: { total: {} } });
  is<Uint8Array>()(await run.export());
  const journal = await run.export({ toStep: 'charge' });
  const replayed = await replay(checkout, journal, { toStep: 3, workflows: [checkout], tasks: [], source: 'a.fjnl' });
  if (replayed.status === 'completed') is<OutputOf<typeof checkout>>()(replayed.result);
  const { checked, failures } = await check({ workflows: [checkout], dir: './data', journals: [journal, 'a.fjnl'] });
  is<number>()(checked);
  is<StuckReport | undefined>()(failures[0]?.difference);
  // @ts-expect-error the bytes, not their file's name
  await replay(checkout, 'a.fjnl');
  is<RunRow>()(await run.describe());
  is<WorkflowHandle<string>>()(engine.handle(checkout, '1', { runId: 'r' }));
  is<WorkflowHandle<unknown>>()(engine.handle('1'));
  for await (const row of engine.list({
    type: [checkout, 'other'],
    status: 'running',
    startedAfter: Date.now(),
    limit: 5,
  }))
    is<RunRow>()(row);
  is<number>()(await engine.count({ stuck: true }));
  const why: Explanation = await engine.explain('1');
  if (why.reason === 'timer') is<Date>()(why.until);
  if (why.reason === 'stuck') is<StuckReport['seq'] | undefined>()(why.recorded === undefined ? undefined : why.seq);
  engine
    .on('completed', (e) => void e.result)
    .once('stuck', (e) => void e.error.report?.place)
    .off('failed', () => {});
  // @ts-expect-error there is no event of that name
  engine.on('error', () => {});
  engine
    .unref()
    .ref()
    .handleSignals({ grace: duration('10s') });
  await engine.close({ grace: '10s' });
  await using other = await open(':memory:');
  void other;

  const error: unknown = null;
  if (StepError.is(error)) is<'STEP_FAILED'>()(error.code);
  if (CancelledError.is(error)) is<string | undefined>()(error.reason);
  if (FuseeError.is(error)) {
    switch (error.code) {
      case 'CHILD_WORKFLOW_FAILED':
        is<'failed' | 'cancelled' | 'terminated' | 'timedOut' | 'skipped' | 'missed' | 'expired' | 'shed'>()(
          error.status,
        );
        break;
      case 'TIMEOUT':
        is<'attempt' | 'heartbeat' | 'run' | 'scope' | 'wait'>()(error.of);
    }
  }

  const t = await testEngine({ workflows: [checkout], now: '2025-06-01T00:00:00Z', seed: 2 });
  await t.advance('1d');
  await t.idle();
  t.mockStep(checkout, 'charge', (attempt) => ({ id: String(attempt) }))();
  t.mock(parsed, (input) => input.qty)();
  await t.crash();
  is<number>()(t.now());

  const { crashes } = await crashEverywhere(
    { workflow: parsed, signals: [{ signal: ping, at: '1h' }], options: { replayOnClose: false } },
    {
      expect: (outcome) => {
        if (outcome.status === 'completed') void outcome.result;
        else is<unknown>()(outcome.error);
      },
    },
  );
  is<number>()(crashes);
}

// Workers.
export async function workers(): Promise<void> {
  const engine = await open('./data', {
    workers: {
      count: 'auto',
      module: new URL('./workflows.js', 'file:///'),
      workerData: { any: 1 },
      execArgv: ['--no-warnings'],
      resourceLimits: { maxOldGenerationSizeMb: 64 },
      blockedAfter: '2s',
      onBlocked: 'replace',
    },
  });
  engine.on('workerLost', (event) => is<number>()(event.restartInMs));
  engine.on('workerReplaced', (event) => is<number>()(event.replayMs));
  engine.on('workerBlocked', (event) => is<boolean>()(event.isBlocked));
  is<Engine>()(workerEngine());
  // @ts-expect-error a module is needed
  await open('./data', { workers: { count: 2 } });
  // @ts-expect-error no such policy
  await open('./data', { workers: { module: './workflows.js', onBlocked: 'ignore' } });
}
