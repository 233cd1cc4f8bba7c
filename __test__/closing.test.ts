import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { open, signal, workflow } from 'fusee';
import { closing, engineOf, quietLogger, rejection } from './support/engines';

const go = signal<void>('go');
const waits = workflow('waits', (ctx: any) => ctx.waitFor(go));

test('after close every call is refused, and close may be called again', async () => {
  const engine = await engineOf([waits]);
  const handle = await engine.start(waits);
  await engine.close();
  await engine.close();
  for (const call of [
    () => engine.start(waits),
    () => engine.execute(waits),
    () => handle.signal(go),
    () => handle.result(),
    () => handle.describe(),
    () => handle.query({ kind: 'query', name: 'q' }),
    () => engine.count(),
    () => engine.explain('x'),
    () => engine.metrics(),
    () => engine.list().next(),
    () => engine.advance(1),
    () => engine.crash(),
  ]) {
    expect(await rejection(Promise.resolve().then(call))).toMatchObject({ name: 'ClosedError', code: 'CLOSED' });
  }
  expect((await engine.health()).status).toBe('failed');
});

test('close with options that cannot be meant closes nothing', async () => {
  const engine = await engineOf([waits]);
  await expect(engine.close({ grace: 'soon' })).rejects.toThrow(RangeError);
  await expect(engine.close({ garce: 1 })).rejects.toThrow(TypeError);
  await engine.start(waits);
});

test('close rejects whoever still waits', async () => {
  const engine = await engineOf([waits]);
  const handle = await engine.start(waits);
  const waiting = rejection(handle.result());
  await engine.close();
  expect((await waiting).name).toBe('ClosedError');
});

test('close lets a running body end within the grace, and records its result', async () => {
  let end: () => void = () => undefined;
  let begin: () => void = () => undefined;
  const hasBegun = new Promise<void>((resolve) => (begin = resolve));
  const works = workflow('works', (ctx: any) =>
    ctx.step('work', () => {
      begin();
      return new Promise((resolve) => (end = () => resolve(1)));
    }),
  );
  const engine: any = await open(':memory:', { workflows: [works], logger: quietLogger().logger } as any);
  const result = engine.execute(works);
  await hasBegun;
  const close = engine.close({ grace: '5m' });
  setTimeout(() => end(), 20);
  await close;
  await expect(result).resolves.toBe(1);
});

test('close aborts a body that does not end within the grace, and goes on', async () => {
  let reason: any;
  let begin: () => void = () => undefined;
  const hasBegun = new Promise<void>((resolve) => (begin = resolve));
  const hangs = workflow('hangs', (ctx: any) =>
    ctx.step('hang', (step: any) => {
      begin();
      step.signal.addEventListener('abort', () => (reason = step.signal.reason));
      return new Promise(() => undefined);
    }),
  );
  const engine: any = await open(':memory:', { workflows: [hangs], logger: quietLogger().logger } as any);
  const waiting = rejection(engine.execute(hangs));
  await hasBegun;
  await engine.close({ grace: 30 });
  expect(reason.name).toBe('ClosedError');
  expect((await waiting).name).toBe('ClosedError');
});

test('LAW-9: after the storage failed every caller gets its error, no body starts, and close still works', async () => {
  const calls: number[] = [];
  const steps = workflow('steps', async (ctx: any) => {
    await ctx.waitFor(go);
    await ctx.step('s', () => calls.push(1));
  });
  const engine = await engineOf([steps]);
  const handle = await engine.start(steps);
  const waiting = rejection(handle.result());
  engine.core.handleEvent(10, 0, 0, 'STORAGE\u001fthe disk died');
  expect(await waiting).toMatchObject({ name: 'StorageError', message: 'the disk died' });
  expect((await rejection(engine.start(steps))).name).toBe('StorageError');
  expect((await rejection(handle.signal(go))).name).toBe('StorageError');
  expect(engine.lines.some(({ level }: any) => level === 'error')).toBe(true);
  await engine.close();
  expect(calls).toEqual([]);
});

test('health and metrics say how an engine is', async () => {
  const engine = closing(await engineOf([waits]));
  await engine.start(waits);
  await expect(engine.health()).resolves.toEqual({ status: 'ok', problems: [] });
  const metrics = await engine.metrics();
  expect(metrics['log.durable_lsn']).toBeGreaterThan(0);
});

test('metrics are told in the text format of Prometheus, families together and in base units', async () => {
  const queues = { 'a "b"\\c': { concurrency: 3 } };
  const engine = closing(await engineOf([waits], { queues }));
  await engine.start(waits);
  const text: string = await engine.metricsText();
  expect(text.endsWith('\n')).toBe(true);
  const families = text.split('# HELP ').slice(1);
  const kinds = new Map(families.map((family) => [family.split(' ')[0]!, family]));
  expect(kinds.size).toBe(families.length);
  for (const [name, family] of kinds) {
    const [help, type, ...lines] = family.trimEnd().split('\n');
    expect(help).toMatch(/^fusee_[a-z0-9_]+ (?:[A-Z]|99th).*\.$/);
    expect(type).toMatch(new RegExp(`^# TYPE ${name} ${name.endsWith('_total') ? 'counter' : 'gauge'}$`));
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) {
      expect(line.slice(0, name.length + 1)).toMatch(/[ {]$/);
      expect(Number(line.slice(line.lastIndexOf(' ')))).not.toBeNaN();
    }
  }
  const figures = Object.keys(await engine.metrics());
  const told = [...kinds.keys()].filter((name) => !name.startsWith('fusee_queue_'));
  expect(told).toHaveLength(new Set(figures.map((name) => name.replace(/^shard\.\d+\./, ''))).size);
  expect(kinds.get('fusee_open_runs')).toMatch(/^fusee_open_runs\{shard="\d+"\} 1$/m);
  expect(kinds.get('fusee_queue_concurrency')).toContain('{queue="a \\"b\\"\\\\c"} 3\n');
  expect(kinds.get('fusee_log_flush_average_seconds')).toBeDefined();
});

test('await using closes an engine', async () => {
  const engine: any = await open(':memory:', { workflows: [waits], logger: quietLogger().logger } as any);
  await engine[Symbol.asyncDispose]();
  expect((await rejection(engine.start(waits))).name).toBe('ClosedError');
});

test('listeners are told when something is durable; what they throw is reported', async () => {
  const ends = workflow('ends', async (_ctx: any, isGood: boolean) => {
    if (!isGood) throw new Error('bad');
    return 'good';
  });
  const stuck = workflow('stuck', () => new Promise(() => undefined));
  const engine = await engineOf([ends, stuck, waits]);
  const seen: any[] = [];
  for (const name of ['completed', 'failed', 'stuck', 'terminated', 'cancelled'])
    engine.on(name, (event: any) => seen.push(event));
  engine.once('completed', () => {
    throw new Error('listener broke');
  });
  await engine.execute(ends, true, { id: 'e1' });
  await rejection(engine.execute(ends, false, { id: 'e2' }));
  await engine.start(stuck, undefined, { id: 'e3' });
  const handle = await engine.start(waits, undefined, { id: 'e4' });
  await handle.terminate('enough');
  await engine.idle();
  expect(seen.map(({ type, id }) => [type, id]).sort()).toEqual([
    ['completed', 'e1'],
    ['failed', 'e2'],
    ['stuck', 'e3'],
    ['terminated', 'e4'],
  ]);
  expect(seen.find(({ type }) => type === 'completed')).toMatchObject({ result: 'good', definition: 'ends' });
  expect(seen.find(({ type }) => type === 'failed').error.message).toBe('bad');
  expect(seen.find(({ type }) => type === 'terminated').reason).toBe('enough');
  expect(engine.lines.some(({ message }: any) => message.includes("a listener of 'completed' threw"))).toBe(true);
  expect(() => engine.on('error', () => undefined)).toThrow(/no event 'error'/);
});

test('a closed engine and its runs are collected', async () => {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  const closed = async (): Promise<WeakRef<object>> => {
    const sleeps = workflow('sleeps', (ctx) => ctx.sleep('1h'));
    const engine = await open(':memory:', { workflows: [sleeps] });
    await engine.start(sleeps);
    await engine.close();
    return new WeakRef(engine);
  };
  const engines = await Promise.all(Array.from({ length: 10 }, closed));
  for (let round = 0; round < 50 && engines.some((engine) => engine.deref() !== undefined); round += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    gc();
  }
  expect(engines.filter((engine) => engine.deref() !== undefined)).toEqual([]);
});
