import { NonRetryableError, RetryableError, workflow } from 'fusee';
import { engineOf, rejection } from './support/engines';

const failing = (times: number, error: () => unknown = () => new Error('no')) => {
  const calls: number[] = [];
  const body = (step: any): string => {
    calls.push(step.attempt);
    if (calls.length <= times) throw error();
    return 'done';
  };
  return { calls, body };
};

test('a step is tried three times by default, with waits in between', async () => {
  const { calls, body } = failing(2);
  const tries = workflow('tries', (ctx: any) => ctx.step('try', body));
  const engine = await engineOf([tries]);
  const handle = await engine.start(tries);
  await engine.idle();
  expect(calls).toEqual([1]);
  await engine.advance('1s');
  await engine.advance('2s');
  expect(calls).toEqual([1, 2, 3]);
  await expect(handle.result()).resolves.toBe('done');
});

test('a step that fails for good gives a StepError with its attempts, its history and its cause', async () => {
  const { body } = failing(9);
  const tries = workflow('tries', (ctx: any) => ctx.step('try', body, { retry: { maxAttempts: 2, jitter: false } }));
  const engine = await engineOf([tries]);
  const handle = await engine.start(tries);
  await engine.advance('1m');
  const { cause } = await rejection(handle.result());
  expect(cause).toMatchObject({ name: 'StepError', step: 'try', attempts: 2 });
  expect(cause.cause.message).toBe('no');
  expect(cause.history).toHaveLength(1);
});

test('waits double up to the longest one', async () => {
  const { calls, body } = failing(4);
  const retry = { maxAttempts: 9, initialInterval: '1s', backoff: 2, maxInterval: '3s', jitter: false };
  const tries = workflow('tries', (ctx: any) => ctx.step('try', body, { retry }));
  const engine = await engineOf([tries]);
  await engine.start(tries);
  for (const [by, expected] of [
    [999, 1],
    [1, 2],
    [1999, 2],
    [1, 3],
    [2999, 3],
    [1, 4],
    [2999, 4],
    [1, 5],
  ]) {
    await engine.advance(by);
    expect(calls).toHaveLength(expected!);
  }
});

test.each([
  ['NonRetryableError', () => new NonRetryableError('never'), {}],
  [
    'an error named in nonRetryable',
    () => Object.assign(new Error('x'), { name: 'BadCard' }),
    { nonRetryable: ['BadCard'] },
  ],
  ['an error that shouldRetry refuses', () => new Error('x'), { shouldRetry: () => false }],
])('%s ends the attempts', async (_name, error, retry) => {
  const { calls, body } = failing(9, error);
  const tries = workflow('tries', (ctx: any) => ctx.step('try', body, { retry }));
  const engine = await engineOf([tries]);
  expect((await rejection(engine.execute(tries))).cause.attempts).toBe(1);
  expect(calls).toEqual([1]);
});

test('RetryableError says how long to wait at least', async () => {
  const { calls, body } = failing(1, () => new RetryableError('busy', { retryAfter: '1h' }));
  const tries = workflow('tries', (ctx: any) => ctx.step('try', body));
  const engine = await engineOf([tries]);
  const handle = await engine.start(tries);
  await engine.advance('59m');
  expect(calls).toHaveLength(1);
  await engine.advance('1m');
  await expect(handle.result()).resolves.toBe('done');
});

test('retry options that throw end the attempts and are reported', async () => {
  const { body } = failing(9);
  const shouldRetry = (): boolean => {
    throw new Error('broken');
  };
  const tries = workflow('tries', (ctx: any) => ctx.step('try', body, { retry: { shouldRetry } }));
  const engine = await engineOf([tries]);
  await rejection(engine.execute(tries));
  expect(engine.lines.some(({ message }: any) => message.includes('retry options'))).toBe(true);
});

test('onExhausted: pause waits for somebody, who gives it fresh attempts', async () => {
  const { calls, body } = failing(2);
  const retry = { maxAttempts: 2, onExhausted: 'pause', jitter: false };
  const tries = workflow('tries', (ctx: any) => ctx.step('try', body, { retry }));
  const engine = await engineOf([tries]);
  const handle = await engine.start(tries);
  await engine.advance('1d');
  expect(calls).toEqual([1, 2]);
  expect((await handle.describe()).paused).toBe(true);
  await expect(engine.explain(handle.id)).resolves.toEqual({ reason: 'paused', step: 'try' });
  await handle.resume();
  await expect(handle.result()).resolves.toBe('done');
  expect(calls).toEqual([1, 2, 1]);
});

test('an attempt that takes too long has failed, its signal aborts, and its late outcome is ignored', async () => {
  const ends: (() => void)[] = [];
  const reasons: any[] = [];
  const slow = workflow('slow', (ctx: any) =>
    ctx.step(
      'slow',
      (step: any) =>
        new Promise((resolve) => {
          step.signal.addEventListener('abort', () => reasons.push(step.signal.reason));
          ends.push(() => resolve(step.attempt));
        }),
      { timeout: '30s', retry: { maxAttempts: 2, jitter: false } },
    ),
  );
  const engine = await engineOf([slow]);
  const handle = await engine.start(slow);
  await engine.advance('30s');
  expect(reasons).toHaveLength(1);
  expect(reasons[0]).toMatchObject({ name: 'TimeoutError', of: 'attempt' });
  ends[0]!();
  await engine.advance('1s');
  expect(ends).toHaveLength(2);
  ends[1]!();
  await expect(handle.result()).resolves.toBe(2);
});

test('silence longer than heartbeatTimeout fails an attempt; heartbeats keep it alive and reach the next attempt', async () => {
  const seen: unknown[] = [];
  const ends: ((value: unknown) => void)[] = [];
  const steps: any[] = [];
  const beats = workflow('beats', (ctx: any) =>
    ctx.step(
      'beat',
      (step: any) => {
        seen.push(step.lastHeartbeat);
        steps.push(step);
        return new Promise((resolve) => ends.push(resolve));
      },
      { heartbeatTimeout: '10s', retry: { maxAttempts: 2, jitter: false } },
    ),
  );
  const engine = await engineOf([beats]);
  const handle = await engine.start(beats);
  await engine.advance('9s');
  steps[0].heartbeat({ at: 1 });
  await engine.advance('9s');
  steps[0].heartbeat({ at: 2 });
  await engine.advance('9s');
  expect(steps[0].signal.aborted).toBe(false);
  await engine.advance('2s');
  expect(steps[0].signal.aborted).toBe(true);
  expect(steps[0].signal.reason).toMatchObject({ of: 'heartbeat' });
  await engine.advance('1s');
  expect(seen).toEqual([undefined, { at: 2 }]);
  ends[1]!('ok');
  await expect(handle.result()).resolves.toBe('ok');
});

test('the cause of a step that ran out of time is a TimeoutError', async () => {
  const hangs = workflow('hangs', (ctx: any) =>
    ctx.step('hang', () => new Promise(() => undefined), { timeout: '1s', retry: { maxAttempts: 1 } }),
  );
  const engine = await engineOf([hangs]);
  const handle = await engine.start(hangs);
  await engine.advance('1s');
  expect((await rejection(handle.result())).cause.cause.name).toBe('TimeoutError');
});

test('a heartbeat whose details cannot be recorded does not throw', async () => {
  const beats = workflow('beats', (ctx: any) =>
    ctx.step('beat', (step: any) => {
      step.heartbeat(() => 1);
      return 1;
    }),
  );
  const engine = await engineOf([beats]);
  await expect(engine.execute(beats)).resolves.toBe(1);
});

test('ctx used inside the function of a step fails the step at the first attempt', async () => {
  let attempts = 0;
  const misuses = workflow('misuses', (ctx: any) =>
    ctx.step('outer', async () => {
      attempts += 1;
      await ctx.sleep('1s');
    }),
  );
  const engine = await engineOf([misuses]);
  const { cause } = await rejection(engine.execute(misuses));
  expect(cause).toMatchObject({ name: 'StepError', step: 'outer', attempts: 1, cause: { name: 'DeterminismError' } });
  expect(attempts).toBe(1);
});

test('a mock that nothing calls is warned about at close, unless it was undone', async () => {
  const steps = workflow('steps', (ctx: any) => ctx.step('charge', async () => 1));
  const engine = await engineOf([steps]);
  engine.mockStep(steps, 'charge', () => 2);
  engine.mockStep(steps, 'chrage', () => 3);
  engine.mockStep(steps, 'undone', () => 4)();
  expect(await engine.execute(steps)).toBe(2);
  await engine.close();
  const warned = engine.lines.filter(({ level }: { level: string }) => level === 'warn');
  expect(warned.map(({ message }: { message: string }) => message)).toEqual([
    "fusee: the mock of step 'chrage' of workflow 'steps' was never called; is that its name?",
  ]);
});
