import { query, signal, workflow } from 'fusee';
import { crashEverywhere } from 'fusee/testing';
import { engineOf, rejection } from './support/engines';

const go = signal<void>('go');
const hangs = (): Promise<never> => new Promise(() => undefined);

const namesOf = async (handle: any, kind: string): Promise<(string | undefined)[]> => {
  const names: (string | undefined)[] = [];
  for await (const record of handle.history()) if (record.kind === kind) names.push(record.name);
  return names;
};

test('a scope is cancelled as a whole, and what is around it goes on', async () => {
  const reasons: unknown[] = [];
  const parts = workflow('parts', async (ctx: any) => {
    let inner: unknown;
    const group = ctx.scope(async (scope: any) => {
      inner = scope;
      scope.signal.addEventListener('abort', () => reasons.push(scope.signal.reason.name));
      return Promise.allSettled([
        ctx.sleep('1d'),
        ctx.waitFor(go),
        ctx.condition(() => false),
        ctx.step('hangs', (step: any) => {
          step.signal.addEventListener('abort', () => reasons.push(`step: ${step.signal.reason.name}`));
          return hangs();
        }),
      ]);
    });
    const outside = ctx.waitFor(go);
    await ctx.sleep(10);
    (inner as any).cancel('enough');
    const settled = await group;
    await outside;
    return settled.map(({ status, reason }: any) => `${status} ${reason?.name} ${reason?.reason}`);
  });
  const engine = await engineOf([parts]);
  const handle = await engine.start(parts);
  await engine.advance(10);
  await engine.crash();
  await handle.signal(go);
  await expect(handle.result()).resolves.toEqual(Array(4).fill('rejected CancelledError enough'));
  expect(reasons).toContain('CancelledError');
  expect(reasons).toContain('step: CancelledError');
});

test('nothing more may be asked for in a cancelled scope, also in what follows later and in scopes within', async () => {
  const refused = workflow('refused', async (ctx: any) => {
    const seen: string[] = [];
    const attempt = async (what: string, fn: () => Promise<unknown>): Promise<void> => {
      await fn().then(
        () => seen.push(`${what} went on`),
        (error: any) => seen.push(`${what} ${error.name}`),
      );
    };
    await ctx.scope(async (scope: any) => {
      await ctx.scope(async () => {
        scope.cancel();
        await attempt('step', () => ctx.step('no', () => 1));
        await attempt('scope', () => ctx.scope(() => ctx.sleep(1)));
        await attempt('shield', () => ctx.scope(() => ctx.sleep(1), { cancellable: false }));
        await attempt('child', () => ctx.run(refused));
      });
      await attempt('later', () => ctx.sleep(1));
    });
    await attempt('outside', () => ctx.sleep(1));
    return seen;
  });
  const engine = await engineOf([refused]);
  const handle = await engine.start(refused);
  await engine.advance(2);
  await expect(handle.result()).resolves.toEqual([
    'step CancelledError',
    'scope CancelledError',
    'shield went on',
    'child CancelledError',
    'later CancelledError',
    'outside went on',
  ]);
});

test('a shielded scope ends its work after a cancel; the rest is cancelled', async () => {
  const shielded = workflow('shielded', async (ctx: any) => {
    const saved = ctx.scope(
      async () => {
        await ctx.sleep(10);
        return ctx.step('save', () => 'saved');
      },
      { cancellable: false },
    );
    const [first, second] = await Promise.allSettled([saved, ctx.scope(() => ctx.sleep('1d'))]);
    const after = await ctx.scope(() => ctx.step('after', () => 'after'), { cancellable: false });
    const refused = await ctx.step('refused', () => 1).catch((error: any) => error.name);
    throw Object.assign(new Error('told'), { seen: [first, (second as any).reason.name, after, refused] });
  });
  const engine = await engineOf([shielded]);
  const handle = await engine.start(shielded);
  await engine.idle();
  await handle.cancel('stop');
  await engine.idle();
  await engine.crash();
  await engine.advance(10);
  const { cause } = await rejection(handle.result());
  expect(cause.seen).toEqual([{ status: 'fulfilled', value: 'saved' }, 'CancelledError', 'after', 'CancelledError']);
});

test('a scope has a time limit, which survives a crash; work that is done in time takes it back', async () => {
  const limited = workflow('limited', async (ctx: any, ms: number) => {
    const result = await ctx
      .scope(() => ctx.sleep(ms).then(() => 'in time'), { timeout: '1h' })
      .catch((error: any) => `${error.name} of ${error.of}`);
    await ctx.sleep('2h');
    return result;
  });
  const engine = await engineOf([limited]);
  const slow = await engine.start(limited, 2 * 3_600_000);
  const quick = await engine.start(limited, 10);
  await engine.advance('59m');
  await engine.crash();
  await engine.advance('5h');
  await expect(slow.result()).resolves.toBe('TimeoutError of scope');
  await expect(quick.result()).resolves.toBe('in time');
});

test('children of a cancelled scope, and of a cancelled run, are asked to end', async () => {
  const tidied: string[] = [];
  const kid = workflow('kid', async (ctx: any, name: string) => {
    try {
      await ctx.waitFor(go);
    } finally {
      tidied.push(name);
    }
  });
  const parent = workflow('parent', async (ctx: any) => {
    const ended = await ctx
      .scope(async (scope: any) => {
        const child = ctx.run(kid, 'scoped');
        await ctx.sleep(10);
        scope.cancel();
        return child;
      })
      .catch((error: any) => error.name);
    const rest = [ctx.run(kid, 'run'), ctx.run(kid, 'left', { onParentClose: 'abandon' })];
    await Promise.allSettled(rest);
    await ctx.scope(() => ctx.sleep(50), { cancellable: false });
    return ended;
  });
  const engine = await engineOf([parent, kid], { replayOnClose: false });
  const handle = await engine.start(parent);
  await engine.advance(10);
  expect(tidied).toEqual(['scoped']);
  await handle.cancel();
  await engine.advance(0);
  expect(tidied).toEqual(['scoped', 'run']);
  await engine.crash();
  await engine.advance(50);
  await expect(handle.result()).resolves.toBe('CancelledError');
});

test('LAW-4: of a cancel and a result the one recorded first wins, live and in replay', async () => {
  for (const cancelFirst of [true, false]) {
    const races = workflow('races', async (ctx: any) => {
      const outcome = await ctx
        .scope(async (scope: any) => {
          const work = ctx.waitFor(go).then(() => 'done');
          void ctx.sleep(10).then(() => scope.cancel('late'));
          return work;
        })
        .catch((error: any) => error.name);
      await ctx.sleep('1h');
      return outcome;
    });
    const engine = await engineOf([races]);
    const handle = await engine.start(races);
    await engine.idle();
    if (cancelFirst) await engine.advance(10);
    await handle.signal(go);
    if (!cancelFirst) await engine.advance(10);
    await engine.crash();
    await engine.advance('1h');
    await expect(handle.result()).resolves.toBe(cancelFirst ? 'CancelledError' : 'done');
  }
});

test('compensations run when the workflow fails, the last step first, each a step of its own', async () => {
  const undone: string[] = [];
  const saga = workflow('saga', async (ctx: any) => {
    const undo = { compensate: (result: string, step: any) => undone.push(`${result} ${typeof step.idempotencyKey}`) };
    await ctx.step('flight', () => 'flight-1', undo);
    await Promise.all([ctx.step('hotel', () => 'hotel-1', undo), ctx.step('car', () => 'car-1', undo)]);
    await ctx.step('plain', () => 'plain');
    await ctx.step(
      'pay',
      () => {
        throw new RangeError('no money');
      },
      { ...undo, retry: { maxAttempts: 1 } },
    );
  });
  const engine = await engineOf([saga]);
  const handle = await engine.start(saga);
  const error = await rejection(handle.result());
  expect(error.cause).toMatchObject({ name: 'StepError', step: 'pay' });
  expect(undone).toEqual(['car-1 string', 'hotel-1 string', 'flight-1 string']);
  expect((await namesOf(handle, 'stepCompleted')).slice(4)).toEqual([
    'compensate car',
    'compensate hotel',
    'compensate flight',
  ]);
  const fine = await engine
    .execute(workflow('fine', (ctx: any) => ctx.step('a', () => 'b', { compensate: () => undone.push('never') })))
    .catch((failure: any) => failure.name);
  expect(fine).toBe('UnknownDefinitionError');
  expect(undone).toHaveLength(3);
});

test('compensations run after a cancel, are not cancelled, and the run ends as cancelled', async () => {
  const undone: unknown[] = [];
  const saga = workflow('saga', async (ctx: any) => {
    await ctx.step('a', () => 1, { compensate: () => undone.push('a') });
    await ctx.step('b', () => 2, {
      compensate: (_: number, step: any) => {
        if (step.attempt === 1) throw new Error('once');
        undone.push('b');
      },
      retry: { initialInterval: '1h', jitter: false },
    });
    await ctx.waitFor(go);
  });
  const engine = await engineOf([saga]);
  const handle = await engine.start(saga);
  await engine.idle();
  await handle.cancel('over');
  await engine.advance('30m');
  await engine.crash();
  await handle.cancel('again');
  await engine.advance('30m');
  expect(await rejection(handle.result())).toMatchObject({ name: 'CancelledError', reason: 'over' });
  expect(undone).toEqual(['b', 'a']);
  const done = await engine.start(saga);
  await done.signal(go);
  await done.result();
  const stopped = await engine.start(saga);
  await engine.idle();
  await stopped.terminate();
  expect(undone).toEqual(['b', 'a']);
});

test('a compensation that fails for good is logged, and the others are tried', async () => {
  const undone: unknown[] = [];
  const saga = workflow('saga', async (ctx: any) => {
    await ctx.step('a', () => 1, { compensate: () => undone.push('a') });
    await ctx.step('b', () => 2, {
      compensate: () => {
        throw new Error('never');
      },
      retry: { maxAttempts: 2, initialInterval: 5 },
    });
    throw new RangeError('failed');
  });
  const engine = await engineOf([saga]);
  const handle = await engine.start(saga);
  await engine.advance('1m');
  expect((await rejection(handle.result())).cause).toMatchObject({ name: 'RangeError' });
  expect(undone).toEqual(['a']);
  expect(engine.lines.filter(({ message }: any) => /compensation of step 'b'/.test(message))).toHaveLength(1);
});

test('LAW-7: a saga comes to the same end wherever it crashes', async () => {
  const seen = query<number>('seen');
  const saga = workflow('saga', async (ctx: any) => {
    const undone: string[] = [];
    ctx.onQuery(seen, () => undone.length);
    await ctx.step('a', () => 'a', { compensate: (result: string) => undone.push(result) });
    const late = await ctx
      .scope(() => ctx.step('b', () => 'b', { compensate: () => 'undone' }).then(() => ctx.waitFor(go)), {
        timeout: '1h',
      })
      .catch((error: any) => error.name);
    throw new RangeError(`late: ${late}`);
  });
  const { crashes } = await crashEverywhere(
    { workflow: saga },
    {
      expect: ({ status, error }: any) => {
        expect(status).toBe('failed');
        expect(error.cause.message).toBe('late: TimeoutError');
      },
    },
  );
  expect(crashes).toBeGreaterThan(8);
});

test('options and uses that cannot be meant are refused', async () => {
  let kept: any;
  const bad = workflow('bad', async (ctx: any, what: string) => {
    if (what === 'fn') return ctx.scope();
    if (what === 'option') return ctx.scope(() => 1, { timeouts: 1 });
    if (what === 'compensate') return ctx.step('s', () => 1, { compensate: 5 });
    await ctx.scope((scope: any) => (kept = scope));
    return ctx.step('body', () => kept.cancel(), { retry: { maxAttempts: 1 } });
  });
  const engine = await engineOf([bad]);
  for (const [what, message] of [
    ['fn', /needs a function/],
    ['option', /has no option 'timeouts'/],
    ['compensate', /compensate of ctx.step must be a function/],
    ['body', /ctx\.scope\.cancel was called inside the function of step/],
  ] as const) {
    const error = await rejection(engine.execute(bad, what));
    expect(String(error.cause.cause?.message ?? error.cause.message)).toMatch(message);
  }
});
