import { signal, workflow } from 'fusee';
import { crashEverywhere, testEngine } from 'fusee/testing';
import { quietLogger } from './support/engines';

const go = signal<number>('go');
const quiet = { logger: quietLogger().logger };

describe('crashEverywhere', () => {
  test('LAW-3, LAW-7: a run ends the same wherever it is cut, its effects done once by their keys', async () => {
    const effects = new Map<string, number>();
    const order = workflow('order', async (ctx: any, amount: number) => {
      const charged = await ctx.step('charge', (step: any) => {
        effects.set(step.idempotencyKey, amount);
        return amount;
      });
      const extra = await ctx.waitFor(go);
      await ctx.sleep('1d');
      const [a, b] = await Promise.all([ctx.step('a', async () => 1), ctx.step('b', async () => 2)]);
      return charged + extra + a + b;
    });
    const outcomes: unknown[] = [];
    const { crashes } = await crashEverywhere(
      { workflow: order, input: 10, signals: [{ signal: go, value: 5, at: '1h' }], options: quiet },
      {
        expect: (outcome) => {
          outcomes.push(outcome);
          expect(outcome).toEqual({ status: 'completed', result: 18 });
          expect(new Set(effects.values())).toEqual(new Set([10]));
        },
      },
    );
    // Start, charge, wait, signal, timer set, timer fired, a, b, end: two crashes before each.
    expect(crashes).toBe(18);
    expect(outcomes).toHaveLength(crashes + 1);
  });

  test('an effect without a guard is found out: a crash between it and its record repeats it', async () => {
    let sent = 0;
    const careless = workflow('careless', async (ctx: any) => {
      await ctx.step('send', () => void (sent += 1));
      return sent;
    });
    const cut = crashEverywhere(
      { workflow: careless, options: { ...quiet, replayOnClose: false } },
      {
        expect: () => {
          const times = sent;
          sent = 0;
          if (times !== 1) throw new Error(`sent ${times} times`);
        },
      },
    );
    await expect(cut).rejects.toThrow(
      /^after a crash behind record \d+, whose successor was made and lost: sent 2 times$/,
    );
  });

  test('a start that was lost is made again, children and failures end the same', async () => {
    const child = workflow('child', async (ctx: any, n: number) => ctx.step('s', () => n * 2));
    const parent = workflow('parent', async (ctx: any) => {
      const doubled = await ctx.run(child, 4);
      await ctx.step('fails', () => Promise.reject(new Error(`no ${doubled}`)), { retry: { maxAttempts: 2 } });
    });
    const { crashes } = await crashEverywhere(
      { workflow: parent, options: { ...quiet, workflows: [child] } },
      { expect: ({ status, error }: any) => expect([status, error.cause.cause.message]).toEqual(['failed', 'no 8']) },
    );
    expect(crashes).toBeGreaterThan(10);
  });

  test('a workflow that does not end is told of, and so is bad input', async () => {
    const waits = workflow('waits', (ctx: any) => ctx.waitFor(go));
    await expect(crashEverywhere({ workflow: waits, options: quiet }, { expect: () => undefined })).rejects.toThrow(
      /does not end: no timer is set, no signal is left, and it stands at .*go/,
    );
    const bad = (script: any, check: any = { expect: () => undefined }) => crashEverywhere(script, check);
    await expect(bad({ workflow: 1 })).rejects.toThrow(TypeError);
    await expect(bad({ workflow: waits, signals: [{ signal: 'go' }] })).rejects.toThrow(TypeError);
    await expect(bad({ workflow: waits, signal: [] })).rejects.toThrow(/signal/);
    await expect(bad({ workflow: waits }, undefined)).rejects.toThrow();
    await expect(bad({ workflow: waits }, {})).rejects.toThrow(/expect/);
  });
});

describe('replayOnClose', () => {
  let drawn = 0;
  const careless = workflow('careless', async (ctx: any) => {
    drawn += 1;
    await ctx.sleep(drawn);
    return { drawn };
  });
  const forks = workflow('forks', async (ctx: any) => {
    drawn += 1;
    await ctx.step(`step ${drawn}`, () => drawn);
  });

  test('LAW-5: a run that does not come to the same end is told of at close', async () => {
    const engine = await testEngine({ workflows: [careless], ...quiet, dev: false });
    const handle = await engine.start(careless, undefined, { id: 'c' });
    await engine.advance('1m');
    const { drawn: first } = (await handle.result()) as { drawn: number };
    await expect(engine.close()).rejects.toThrow(
      `1 of 1 runs do not replay to the same end: workflow 'careless' c ended with {"drawn":${first}}; ` +
        `in a replay it ended with {"drawn":${first + 1}}`,
    );
  });

  test('LAW-5: so is one whose code asks for something else', async () => {
    const engine = await testEngine({ workflows: [forks], ...quiet });
    await engine.execute(forks, undefined, { id: 'f' });
    await expect(engine.close()).rejects.toThrow(/'forks' f ended with .*; in a replay .*step "step \d+"/);
  });

  test('it can be left out, and says nothing of replaced functions and of runs that are well', async () => {
    const left = await testEngine({ workflows: [forks], ...quiet, replayOnClose: false });
    await left.execute(forks);
    await left.close();
    const mocked = await testEngine({ workflows: [forks], ...quiet });
    mocked.mock(forks, () => {
      drawn += 1;
      return undefined;
    });
    await mocked.execute(forks);
    await mocked.close();
    const fails = workflow('fails', async (ctx: any) => {
      await ctx.sleep('1h');
      throw new TypeError(`at ${ctx.now()}`);
    });
    const well = await testEngine({ workflows: [fails], ...quiet });
    const handle = await well.start(fails);
    await well.advance('1h');
    await expect(handle.result()).rejects.toThrow('at 1735693200000');
    await well.close();
  });
});
