import { runScript } from './support/scripts';

test('an idle engine in memory, a closed one and one that failed to open let the process end', async () => {
  const idle = await runScript(`
    const engine = await open(':memory:', { workflows: [workflow('w', async () => 1)] });
    console.log(await engine.execute(engine.core.settings.definitions.get('w')));
  `);
  expect(idle).toMatchObject({ code: 0, out: '1\n', err: '' });
  const closed = await runScript(`
    const engine = await open(dir, { workflows: [workflow('w', async () => 1)] });
    await engine.close();
  `);
  expect(closed).toMatchObject({ code: 0, err: '' });
  const failed = await runScript(`await open(dir, { workflows: [1] }).catch((error) => console.log(error.name));`);
  expect(failed).toMatchObject({ code: 0, out: 'TypeError\n' });
});

test('an engine in memory holds the process while something is under way in it', async () => {
  const { out, code } = await runScript(`
    const naps = workflow('naps', async (ctx) => { await ctx.sleep(100); console.log('slept'); });
    const engine = await open(':memory:', { workflows: [naps] });
    await engine.start(naps);
  `);
  expect({ out, code }).toEqual({ out: 'slept\n', code: 0 });
});

test('an engine with definitions holds the process until it is closed or let go', async () => {
  const held = await runScript(
    `await open(dir, { workflows: [workflow('w', async () => 1)] }); console.log('open');`,
    (_out, kill) => setTimeout(() => kill('SIGUSR2'), 300),
  );
  expect(held.signal).toBe('SIGUSR2');
  const let_go = await runScript(`(await open(dir, { workflows: [workflow('w', async () => 1)] })).unref();`);
  expect(let_go).toMatchObject({ code: 0, signal: null });
  const client = await runScript(`await open(dir, {});`);
  expect(client).toMatchObject({ code: 0, signal: null });
});

test('handleSignals closes on SIGTERM and lets the process end by itself', async () => {
  const ended = await runScript(
    `
    const works = workflow('works', (ctx) => ctx.step('s', () => new Promise((r) => setTimeout(() => { console.log('body ended'); r(1); }, 300))));
    const engine = await open(dir, { workflows: [works] });
    engine.handleSignals({ grace: '5s' });
    engine.execute(works).then((result) => console.log('result', result));
    setTimeout(() => console.log('ready'), 50);
    `,
    (out, kill) => out === 'ready\n' && kill('SIGTERM'),
  );
  expect(ended).toMatchObject({ code: 0, signal: null, out: 'ready\nbody ended\nresult 1\n' });
});

test('a rejection that belongs to no run is left to the application, listeners of ours do not count', async () => {
  const { code, err, out } = await runScript(`
    const engine = await open(':memory:', { workflows: [], dev: true });
    console.log(process.listenerCount('unhandledRejection'));
    Promise.reject(new Error('of the application'));
    setTimeout(() => console.log('never'), 100);
  `);
  expect({ code, out }).toEqual({ code: 1, out: '0\n' });
  expect(err).toMatch(/of the application/);
});

test('a floating rejection of a run does not end the process in development', async () => {
  const { code, err, out } = await runScript(`
    const floats = workflow('floats', async (ctx) => {
      (async () => { await ctx.sleep(1); throw new Error('floating'); })();
      await ctx.sleep(50);
      return 'done';
    });
    const engine = await open(':memory:', { workflows: [floats], dev: true });
    console.log(await engine.execute(floats));
  `);
  expect({ code, out }).toEqual({ code: 0, out: 'done\n' });
  expect(err).toMatch(/workflow 'floats' .* nobody handled it/);
});

test('other work of the event loop goes on while a workflow runs through thousands of steps', async () => {
  const { out } = await runScript(`
    const loops = workflow('loops', async (ctx) => {
      for (let i = 0; i < 30000; i += 1) await ctx.step('s', async () => i);
    });
    const engine = await open(':memory:', { workflows: [loops], dev: false });
    let rounds = 0; let isDone = false; let longest = 0; let last = performance.now();
    const count = () => {
      const now = performance.now();
      longest = Math.max(longest, now - last); last = now; rounds += 1;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    await engine.execute(loops);
    isDone = true;
    console.log(JSON.stringify({ rounds, longest }));
  `);
  const { rounds, longest } = JSON.parse(out) as { rounds: number; longest: number };
  expect(rounds).toBeGreaterThan(50);
  expect(longest).toBeLessThan(100);
});
