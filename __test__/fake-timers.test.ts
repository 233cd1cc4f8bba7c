import { open, signal, workflow } from 'fusee';
import { closing, engineOf, quietLogger } from './support/engines';

const go = signal<number>('go');
const long = workflow('long', async (ctx: any) => {
  const a = await ctx.step('a', async () => 1);
  await ctx.sleep('1h');
  const started = ctx.now();
  return [a, await ctx.waitFor(go), started];
});

beforeEach(() => {
  jest.useFakeTimers({ now: 0 });
});
afterEach(() => {
  jest.useRealTimers();
});

test('a test engine works while all timers of the test are fake', async () => {
  const engine = await engineOf([long]);
  const handle = await engine.start(long);
  await engine.advance('1h');
  await handle.signal(go, 2);
  await expect(handle.result()).resolves.toEqual([1, 2, Date.UTC(2025, 0, 1, 1)]);
});

test('a real engine neither hangs under fake timers nor believes their clock', async () => {
  const naps = workflow('naps', async (ctx: any) => {
    const before = ctx.now();
    await ctx.sleep(30);
    return ctx.now() - before >= 30 && before > 1e12;
  });
  const engine: any = closing(
    (await open(':memory:', { workflows: [naps], logger: quietLogger().logger } as any)) as any,
  );
  await expect(engine.execute(naps)).resolves.toBe(true);
});

test('timers faked after the engine was opened are given back as they were', async () => {
  const engine = await engineOf([long]);
  jest.useRealTimers();
  jest.useFakeTimers();
  const faked = Date.now;
  await engine.close();
  expect(Date.now).toBe(faked);
});
