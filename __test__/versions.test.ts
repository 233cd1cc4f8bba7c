import { signal, workflow } from 'fusee';
import { engineOf, rejection } from './support/engines';

const go = signal<void>('go');

/** A workflow whose code can be exchanged between two lives. */
function changing(
  first: (ctx: any) => Promise<unknown>,
  options: object = {},
): { code: typeof first; definition: any } {
  const box = { code: first, definition: undefined as any };
  box.definition = workflow('changing', (ctx: any) => box.code(ctx), options);
  return box;
}

test('LAW-5: patched() keeps old runs on the old way and puts new ones on the new way, over crashes', async () => {
  const box = changing(async (ctx) => {
    await ctx.step('old', () => 1);
    await ctx.waitFor(go);
    return 'old';
  });
  const engine = await engineOf([box.definition], { replayOnClose: false });
  const old = await engine.start(box.definition);
  await engine.idle();
  box.code = async (ctx) => {
    const isNew = ctx.patched('change');
    if (isNew) await ctx.step('new', () => 1);
    else await ctx.step('old', () => 1);
    await ctx.waitFor(go);
    return isNew === ctx.patched('change') ? (isNew ? 'new' : 'old') : 'both';
  };
  await engine.crash();
  const fresh = await engine.start(box.definition);
  await engine.idle();
  await engine.crash();
  await old.signal(go);
  await fresh.signal(go);
  await expect(old.result()).resolves.toBe('old');
  await expect(fresh.result()).resolves.toBe('new');
  // Once no old run is left.
  box.code = async (ctx) => {
    ctx.deprecatePatch('change');
    await ctx.step('new', () => 1);
    await ctx.waitFor(go);
    return ctx.patched('change');
  };
  const later = await engine.start(box.definition);
  await engine.idle();
  await engine.crash();
  await later.signal(go);
  await expect(later.result()).resolves.toBe(true);
});

test('a patch further down is taken by runs that have not come there yet', async () => {
  const box = changing(async (ctx) => {
    await ctx.waitFor(go);
    await ctx.waitFor(go);
    return 'old';
  });
  const engine = await engineOf([box.definition]);
  const handle = await engine.start(box.definition);
  await engine.idle();
  box.code = async (ctx) => {
    await ctx.waitFor(go);
    const isNew = ctx.patched('late');
    if (isNew) await ctx.step('new', () => 1);
    await ctx.waitFor(go);
    return isNew ? 'new' : 'old';
  };
  await engine.crash();
  await handle.signal(go);
  await engine.idle();
  await engine.crash();
  await handle.signal(go);
  await expect(handle.result()).resolves.toBe('new');
});

test('a run goes on with the code of its version while newer runs have newer code', async () => {
  const pinned = (version: number) =>
    workflow(
      'pinned',
      async (ctx: any) => {
        await ctx.step(`step of ${version}`, () => version);
        await ctx.waitFor(go);
        return [version, ctx.version];
      },
      { version },
    );
  const [first, second] = [pinned(1), pinned(2)];
  const engine = await engineOf([first, second]);
  const [one, two] = [await engine.start(first), await engine.start(second)];
  const other = await engine.start(first, undefined, { version: 7 });
  await engine.idle();
  await engine.crash();
  for (const handle of [one, two, other]) await handle.signal(go);
  await expect(one.result()).resolves.toEqual([1, 1]);
  await expect(two.result()).resolves.toEqual([2, 2]);
  await expect(other.result()).resolves.toEqual([2, 7]);
  await expect(engineOf([first, pinned(1)])).rejects.toThrow(/two workflows named 'pinned' of version 1/);
});

test("onMismatch: 'fail' ends a run whose code does not fit, 'retry' tries it again; the default keeps it until somebody does", async () => {
  for (const onMismatch of ['fail', 'stuck', 'retry', undefined]) {
    const box = changing(
      async (ctx) => {
        await ctx.step('before', () => 1);
        await ctx.waitFor(go);
      },
      onMismatch === undefined ? {} : { onMismatch },
    );
    const engine = await engineOf([box.definition], { replayOnClose: false });
    const events: string[] = [];
    engine.on('stuck', ({ error }: any) => events.push(`stuck ${error.report.asked.name}`));
    engine.on('failed', ({ error }: any) => events.push(`failed ${error.name}`));
    const handle = await engine.start(box.definition);
    await engine.idle();
    box.code = async (ctx) => {
      await ctx.step('after', () => 1);
    };
    await engine.crash();
    await engine.idle();
    if (onMismatch === 'fail') {
      expect((await rejection(handle.result())).cause).toMatchObject({
        name: 'DeterminismError',
        message: expect.stringMatching(/recorded step "before", asked for step "after"/),
      });
      expect(events).toEqual(['failed DeterminismError']);
      await engine.crash();
      expect((await handle.describe()).status).toBe('failed');
    } else {
      expect(await handle.describe()).toMatchObject({ status: 'running', stuck: true });
      expect(events).toEqual(['stuck after']);
      if (onMismatch !== 'retry') continue;
      await engine.advance('999ms');
      expect(events).toHaveLength(1);
      await engine.advance('1ms');
      expect(events).toEqual(['stuck after', 'stuck after']);
      const records = async () => {
        let count = 0;
        for await (const _ of handle.history()) count += 1;
        return count;
      };
      const before = await records();
      await engine.advance('1h');
      expect(await records()).toBe(before);
      box.code = async (ctx) => {
        await ctx.step('before', () => 1);
        await ctx.waitFor(go);
        return 'mended';
      };
      await engine.advance('1m');
      await handle.signal(go);
      await expect(handle.result()).resolves.toBe('mended');
    }
  }
});

test('options and arguments that cannot be meant are refused', async () => {
  expect(() => workflow('w', () => 1, { onMismatch: 'ignore' as any })).toThrow(/must be one of stuck, retry, fail/);
  const bad = workflow('bad', async (ctx: any, id: any) => ctx.patched(id));
  const engine = await engineOf([bad]);
  for (const id of ['', 5, 'x'.repeat(300)]) {
    expect((await rejection(engine.execute(bad, id))).cause.name).toBe('TypeError');
  }
});
