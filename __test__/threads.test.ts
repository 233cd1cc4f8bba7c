import { resolve } from 'node:path';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runScript } from './support/scripts';

const fixtures = resolve(__dirname, 'fixtures/threads');

/** Runs a script with the fixture's workflows at hand; it prints JSON, which is returned. */
async function run(body: string): Promise<any> {
  const ended = await runScript(`
    const flows = require(${JSON.stringify(join(fixtures, 'flows.cjs'))});
    const { where, gate, deadly, fatal, about, caller, parent, spin, stuck, nap, go, status } = flows;
    const fixture = (name) => ${JSON.stringify(fixtures)} + '/' + name;
    const module = fixture('flows.cjs');
    const lives = new SharedArrayBuffer(4);
    const workers = (count, more) => ({ logger: quiet, workers: { count, module, workerData: { lives }, ...more } });
    const ids = (count, salt = 'id') => Array.from({ length: count }, (_, n) => salt + n);
    const print = (value) => console.log(JSON.stringify(value ?? null));
    const refusal = (fn) => fn().then(() => 'nothing', (error) => error.name + ': ' + error.message);
    ${body}
  `);
  expect(ended).toMatchObject({ code: 0, signal: null, err: '' });
  return JSON.parse(ended.out.trim().split('\n').at(-1) ?? 'null');
}

test('runs are spread over the workers, and results come to the thread that asked', async () => {
  const answers = await run(`
    const engine = await open(dir, workers(2));
    const results = await Promise.all(ids(40).map((id, n) => engine.execute(where, n, { id })));
    await engine.close();
    print(results);
  `);
  expect(answers.map((answer: any) => answer.input)).toEqual(Array.from({ length: 40 }, (_, n) => n));
  expect(new Set(answers.map((answer: any) => answer.thread)).size).toBe(2);
  expect(answers.every((answer: any) => answer.thread > 0)).toBe(true);
});

test('sleeps of runs of any worker are ended early by the thread that asks', async () => {
  const threads = await run(`
    const engine = await open(dir, workers(2));
    const handles = await Promise.all(ids(8).map((id) => engine.start(nap, undefined, { id })));
    for (const { id } of handles) while ((await engine.explain(id)).reason !== 'timer') await tick();
    await Promise.all(handles.map((handle) => handle.wake()));
    const results = await Promise.all(handles.map((handle) => handle.result()));
    await engine.close();
    print(results);
  `);
  expect(new Set(threads).size).toBe(2);
  expect(threads).not.toContain(0);
});

test('runs of any worker are forked and reset by the thread that asks, across shards', async () => {
  const results = await run(`
    const engine = await open(dir, workers(2));
    const handles = await Promise.all(ids(8).map((id) => engine.start(nap, undefined, { id })));
    for (const { id } of handles) while ((await engine.explain(id)).reason !== 'timer') await tick();
    const resets = await Promise.all(handles.map((handle) => handle.reset({ toStep: 1 })));
    const forks = await Promise.all(resets.map(({ id }) => engine.handle(id).fork({ toStep: 1, id: 'fork-' + id })));
    const all = [...resets, ...forks];
    for (const { id } of all) while ((await engine.explain(id)).reason !== 'timer') await tick();
    await Promise.all(all.map((handle) => handle.wake()));
    const threads = await Promise.all(all.map((handle) => handle.result()));
    const replaced = await Promise.all(handles.map((handle) => handle.result()));
    await engine.close();
    print({ threads, replaced });
  `);
  expect(results.threads).toHaveLength(16);
  expect(new Set(results.threads).size).toBe(2);
  expect(results.replaced).toEqual(results.threads.slice(0, 8));
});

test('every call of a client works for runs of any worker', async () => {
  const told = await run(`
    const engine = await open(dir, workers(2));
    const ended = new Set();
    engine.on('completed', (event) => ended.add(event.id));
    const handles = await Promise.all(ids(8).map((id) => engine.start(gate, undefined, { id })));
    const queried = await Promise.all(handles.map((handle) => handle.query(status, '?')));
    const open8 = await engine.count({ status: 'running' });
    const listed = [];
    for await (const row of engine.list({ type: gate })) listed.push(row.id);
    // An answer to a query says nothing of the run's first step.
    let why = await engine.explain('id3');
    for (let k = 0; k < 1000 && why.reason !== 'waiting'; k += 1) {
      await tick();
      why = await engine.explain('id3');
    }
    await handles[0].cancel('why');
    const cancelled = await refusal(() => handles[0].result());
    await handles[1].terminate('why');
    await Promise.all(handles.slice(2).map((handle) => handle.signal(go, handle.id)));
    const results = await Promise.all(handles.slice(2).map((handle) => handle.result()));
    const records = [];
    for await (const record of handles[5].history()) records.push(record.kind);
    const late = await handles[2].query(status, '!');
    const nobody = await refusal(() => engine.handle(gate, 'nobody').query(status));
    const unknown = await refusal(() => engine.start({ ...where, name: 'elsewhere' }));
    const useless = await refusal(() => handles[2].signal(go, () => 1));
    const health = await engine.health();
    while (ended.size < 6) await tick();
    await engine.close();
    print({ queried, open8, listed: listed.sort(), why, cancelled, results: results.map((r) => r.value),
      records: records.length, late, nobody, unknown, useless, health });
  `);
  expect(told.queried).toEqual(Array(8).fill('waiting?'));
  expect(told.open8).toBe(8);
  expect(told.listed).toEqual(Array.from({ length: 8 }, (_, n) => `id${n}`));
  expect(told.why.reason).toBe('waiting');
  expect(told.cancelled).toMatch(/^CancelledError/);
  expect(told.results).toEqual(['id2', 'id3', 'id4', 'id5', 'id6', 'id7']);
  expect(told.records).toBeGreaterThan(4);
  // A run that has ended is replayed where its code is, and answers as it stood at its end.
  expect(told.late).toBe('went!');
  expect(told.nobody).toMatch(/^RunNotFoundError/);
  expect(told.unknown).toMatch(/^UnknownDefinitionError/);
  expect(told.useless).toMatch(/^TypeError.*cannot be recorded/);
  expect(told.health).toEqual({ status: 'ok', problems: [] });
});

test('code in a worker reaches runs of every worker by the engine of its thread', async () => {
  const answers = await run(`
    const engine = await open(dir, workers(3));
    const answers = await engine.execute(caller, ids(6, 'called'));
    await engine.close();
    print(answers);
  `);
  expect(answers).toEqual(Array.from({ length: 6 }, (_, n) => ['waiting!', `called${n}`, 'completed']));
});

test('children run on other workers, and the same code without workers', async () => {
  const [many, alone] = await run(`
    const engine = await open(dir, workers(2));
    const many = await Promise.all(ids(5).map((id) => engine.execute(parent, 20, { id })));
    await engine.close();
    const single = await open(dir, { logger: quiet, workflows: [parent, flows.child] });
    const alone = await single.execute(parent, 20);
    await single.close();
    print([many, alone]);
  `);
  expect(many).toEqual(Array(5).fill(380));
  expect(alone).toBe(380);
});

test('another number of workers opens the same directory, and goes on with its runs', async () => {
  const results = await run(`
    let engine = await open(dir, workers(2));
    await Promise.all(ids(6).map((id) => engine.start(gate, undefined, { id })));
    await engine.close();
    engine = await open(dir, workers(4));
    await Promise.all(ids(3).map((id) => engine.handle(gate, id).signal(go, id)));
    const three = await Promise.all(ids(3).map((id) => engine.handle(gate, id).result()));
    await engine.close();
    engine = await open(dir, workers('auto'));
    await Promise.all(ids(6).slice(3).map((id) => engine.handle(gate, id).signal(go, id)));
    const rest = await Promise.all(ids(6).slice(3).map((id) => engine.handle(gate, id).result()));
    await engine.close();
    print([...three, ...rest].map((result) => result.value));
  `);
  expect(results).toEqual(['id0', 'id1', 'id2', 'id3', 'id4', 'id5']);
});

test('workerData, execArgv and resourceLimits are those of the options', async () => {
  const told = await run(`
    const more = { workerData: { mine: 1 }, execArgv: ['--no-warnings'], resourceLimits: { maxOldGenerationSizeMb: 77 } };
    const engine = await open(':memory:', workers(1, more));
    const told = await engine.execute(about);
    await engine.close();
    print(told);
  `);
  expect(told.workerData).toEqual({ mine: 1 });
  expect(told.execArgv).toEqual(['--no-warnings']);
  expect(told.resourceLimits.maxOldGenerationSizeMb).toBe(77);
});

test('one file of ESM that opens and is the module runs with the guard, and is named the guard without it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'fusee-threads-'));
  const guarded = spawnSync(process.execPath, [join(fixtures, 'flows.mjs'), join(folder, 'data')], {
    encoding: 'utf8',
  });
  expect(guarded.stderr).toBe('');
  expect(JSON.parse(guarded.stdout)).toMatchObject({ input: 1 });
  const unguarded = spawnSync(process.execPath, [join(fixtures, 'unguarded.mjs')], { encoding: 'utf8' });
  expect(unguarded.status).toBe(1);
  expect(unguarded.stderr).toContain('isMainThread');
  rmSync(folder, { recursive: true, force: true });
});

test('why a worker could not load is told, however late the thread that opens hears of its end', async () => {
  const told = await run(`
    const told = [];
    for (let round = 0; round < 5; round += 1) {
      const refused = refusal(() => open(':memory:', workers(1, { module: fixture('empty.cjs') })));
      // What the worker says and its end have both come when this thread looks again.
      for (let turn = 0; turn < 3; turn += 1) {
        await new Promise(setImmediate);
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
      }
      told.push(await refused);
    }
    print(told);
  `);
  for (const why of told) expect(why).toMatch(/^TypeError: .*exports no definition/);
});

test('what cannot be is refused at open, and leaves nothing open', async () => {
  const told = await run(`
    const told = {};
    const attempt = async (name, options, where = dir) => { told[name] = await refusal(() => open(where, options)); };
    await attempt('zero', workers(0));
    await attempt('module', { workers: { count: 1 } });
    await attempt('both', { ...workers(1), workflows: [where] });
    await attempt('option', workers(1, { nonsense: 1 }));
    await attempt('broken', workers(2, { module: fixture('broken.cjs') }));
    await attempt('missing', workers(1, { module: fixture('missing.cjs') }));
    await attempt('empty', workers(1, { module: fixture('empty.cjs') }));
    await attempt('different', workers(2, { module: fixture('different.cjs') }));
    await attempt('many', { ...workers(5), shards: 3 }, ':memory:');
    const engine = await open(dir, workers(2));
    await attempt('twice', workers(2));
    await engine.close();
    told.closed = await refusal(() => engine.start(where));
    told.outside = await refusal(async () => fusee.workerEngine());
    print(told);
  `);
  expect(told.zero).toMatch(/^RangeError: workers.count .*'auto', not 0/);
  expect(told.module).toMatch(/^TypeError: workers.module/);
  expect(told.both).toMatch(/^TypeError: workflows are those/);
  expect(told.option).toMatch(/^TypeError: .*no option 'nonsense'/);
  expect(told.broken).toMatch(/this module is broken/);
  expect(told.missing).toMatch(/missing.cjs/);
  expect(told.empty).toMatch(/^TypeError: .*exports no definition/);
  expect(told.different).toMatch(/^TypeError: the workers have different code: only one of them exports/);
  expect(told.many).toMatch(/^TypeError: .*3 shards.*5 workers/);
  expect(told.twice).toMatch(/^DirectoryLockedError/);
  expect(told.closed).toMatch(/^ClosedError/);
  expect(told.outside).toMatch(/^TypeError: workerEngine/);
});

test.each(['exit', 'exit late', 'throw', 'memory'])(
  'a worker that ends by %s is replaced, and its runs go on (LAW-7)',
  async (how) => {
    const told = await run(`
    const limits = { resourceLimits: { maxOldGenerationSizeMb: 32 } };
    const engine = await open(dir, workers(2, limits));
    const lost = [];
    engine.on('workerLost', (event) => lost.push({ worker: event.worker, restartInMs: event.restartInMs }));
    const replaced = new Promise((resolve) => engine.once('workerReplaced', resolve));
    const handles = await Promise.all(ids(6).map((id) => engine.start(gate, undefined, { id })));
    const result = await engine.execute(deadly, ${JSON.stringify(how)}, { id: 'deadly' });
    const { worker, lostForMs, replayMs } = await replaced;
    await Promise.all(handles.map((handle) => handle.signal(go, handle.id)));
    const others = await Promise.all(handles.map((handle) => handle.result()));
    const health = await engine.health();
    await engine.close();
    print({ lost, replaced: { worker, lostForMs, replayMs }, result, others: others.map((other) => other.value), health: health.status, lives: new Int32Array(lives)[0] });
  `);
    expect(told.lost).toHaveLength(1);
    expect(told.lost[0].restartInMs).toBe(0);
    expect(told.replaced).toEqual({
      worker: told.lost[0].worker,
      lostForMs: expect.any(Number),
      replayMs: expect.any(Number),
    });
    expect(told.lives).toBe(2);
    expect(told.result.attempt).toBe(1);
    expect(told.others).toEqual(Array.from({ length: 6 }, (_, n) => `id${n}`));
    expect(told.health).toBe('ok');
  },
);

test('a run whose code ends its thread each time is set aside, and no other thread ends by it (LAW-11)', async () => {
  const told = await run(`
    const engine = await open(dir, workers(2));
    const lost = [];
    engine.on('workerLost', (event) => lost.push([event.worker, event.exitCode]));
    const setAside = new Promise((resolve) => engine.on('stuck', resolve));
    const handle = await engine.start(fatal, undefined, { id: 'fatal' });
    const event = await setAside;
    const others = await Promise.all(ids(6).map((id) => engine.execute(where, id, { id })));
    const explained = await engine.explain('fatal');
    await handle.terminate('mended nowhere');
    const described = await handle.describe();
    await engine.close();
    print({ lost, message: event.error.message, inputs: others.map((other) => other.input), explained, status: described.status });
  `);
  expect(told.lost).toEqual(Array.from({ length: 3 }, () => [told.lost[0][0], 4]));
  expect(told.message).toContain('its code ended 3 threads in a row');
  expect(told.inputs).toEqual(Array.from({ length: 6 }, (_, n) => `id${n}`));
  expect(told.explained.reason).toBe('stuck');
  expect(told.status).toBe('terminated');
});

test('a blocked worker is reported with its run, and starts and signals to it are acknowledged (LAW-11)', async () => {
  const told = await run(`
    const engine = await open(dir, workers(1, { blockedAfter: '100ms' }));
    const told = [];
    let isOver = false;
    engine.on('workerBlocked', (event) => told.push(event));
    const spinning = engine.execute(spin, 1500, { id: 'spinner' }).then(() => (isOver = true));
    while (told.length === 0) await tick();
    const health = await engine.health();
    const handle = await engine.start(gate, undefined, { id: 'g' });
    await handle.signal(go, 1);
    const wasBlocked = !isOver;
    await spinning;
    const result = await handle.result();
    while (told.length < 2) await tick();
    await engine.close();
    print({ told, health, wasBlocked, value: result.value });
  `);
  expect(told.told[0]).toMatchObject({ worker: 0, isBlocked: true, run: { id: 'spinner', definition: 'spin' } });
  expect(told.told[1]).toMatchObject({ worker: 0, isBlocked: false });
  expect(told.health.status).toBe('degraded');
  expect(told.health.problems[0]).toContain('worker 0 is blocked');
  expect(told.wasBlocked).toBe(true);
  expect(told.value).toBe(1);
});

test('a worker that is blocked for ever is replaced, where the policy says so', async () => {
  const told = await run(`
    const engine = await open(dir, workers(2, { blockedAfter: '100ms', onBlocked: 'replace' }));
    const lost = [];
    engine.on('workerLost', (event) => lost.push(event.worker));
    const result = await engine.execute(deadly, 'block', { id: 'blocks' });
    await engine.close();
    print({ lost: lost.length, attempt: result.attempt });
  `);
  expect(told).toEqual({ lost: 1, attempt: 1 });
});

test('a late report about a blocked thread leaves the thread alone that has replaced it', async () => {
  const told = await run(`
    const engine = await open(dir, { logger: quiet, workers: { count: 1, module, workerData: { lives }, onBlocked: 'replace' } });
    const losses = [];
    engine.on('workerLost', ({ worker }) => losses.push(worker));
    await engine.execute(deadly, 'exit', { id: 'deadly' });
    const { pool } = engine;
    const { incarnation } = pool.members[0];
    pool.handleBlocked(0, incarnation - 1);
    const before = losses.length;
    pool.handleBlocked(0, incarnation);
    await engine.execute(where, 1, { id: 'where' });
    await engine.close();
    print({ before, after: losses.length });
  `);
  expect(told).toEqual({ before: 1, after: 2 });
});

test('close does not wait without end for a thread in a call of the system, and says which', async () => {
  const told = await run(`
    const fs = require('node:fs');
    const warnings = [];
    const logger = { ...quiet, warn: (text) => warnings.push(text) };
    const fifo = dir + '-fifo';
    require('node:child_process').execFileSync('mkfifo', [fifo]);
    const engine = await open(dir, { ...workers(2), logger });
    await engine.start(stuck, fifo, { id: 'stuck' });
    const reached = new Int32Array(lives);
    while (Atomics.load(reached, 0) === 0) await tick();
    await engine.close({ grace: 0 });
    // The directory is free, though the thread is there: another opening runs what is left.
    const next = await open(dir, { logger: quiet });
    const { status: after } = await next.handle(stuck, 'stuck').describe();
    await next.close();
    fs.closeSync(fs.openSync(fifo, fs.constants.O_WRONLY | fs.constants.O_NONBLOCK));
    fs.rmSync(fifo);
    print({ after, warnings: warnings.filter((text) => /does not end/.test(text)).length });
  `);
  expect(told).toEqual({ after: 'running', warnings: 1 });
});

test('a replacement that cannot be started is tried again, with an event', async () => {
  const told = await run(`
    let reads = 0;
    const workerData = {
      lives,
      // Copied at each start of a thread: that of the first replacement fails.
      get copied() {
        reads += 1;
        if (reads === 2) throw new Error('no thread for now');
        return reads;
      },
    };
    const losses = [];
    const engine = await open(dir, { logger: quiet, workers: { count: 1, module, workerData } });
    engine.on('workerLost', ({ error, restartInMs }) => losses.push([String(error?.message), restartInMs > 0]));
    const { attempt } = await engine.execute(deadly, 'exit', { id: 'deadly' });
    await engine.close();
    print({ attempt, losses });
  `);
  expect(told.attempt).toBe(1);
  expect(told.losses).toEqual([
    ['undefined', false],
    ['no thread for now', true],
  ]);
});

// A sample; the full run is FUSEE_CYCLES=1000 node --expose-gc tests/thread-cycles.mjs, with its result in docs/results.
test('workers that start and end under load, again and again, lose nothing and leave nothing (LAW-1, LAW-3)', () => {
  const cycles = process.env['FUSEE_CYCLES'] ?? '8';
  const ended = spawnSync(process.execPath, ['--expose-gc', resolve(__dirname, '../tests/thread-cycles.mjs')], {
    encoding: 'utf8',
    env: { ...process.env, FUSEE_CYCLES: cycles },
  });
  expect(ended).toMatchObject({ status: 0, signal: null, stderr: '' });
  expect(ended.stdout).toContain(`${cycles} cycles in`);
});

test('updates, pauses, continuations and signals with a start work over workers and openings', async () => {
  const told = await run(`
    const { sums, rounds, driver, add, finish, set, total } = require(fixture('lasting.cjs'));
    const over = (count) => workers(count, { module: fixture('lasting.cjs') });
    let engine = await open(dir, over(2));
    const driven = await engine.execute(driver, ids(5, 'driven'));
    const answers = await Promise.all(ids(6).map((id) =>
      engine.updateWithStart(sums, { id, input: 10, update: set, value: 1 }).then(({ answer }) => answer)));
    const first = ids(4, 'round').map((id) => engine.start(rounds, { round: 1, sum: 0 }, { id }));
    await Promise.all(first);
    for (let value = 1; value <= 3; value += 1) await Promise.all(ids(4, 'round').map((id) => engine.handle(id).signal(add, value)));
    await engine.handle('id0').pause();
    await engine.close();

    engine = await open(dir, over(3));
    const held = await engine.handle(sums, 'id0').describe();
    const busy = await refusal(() => engine.handle(sums, 'id0').query(total));
    const more = await Promise.all(ids(6).slice(1).map((id) => engine.handle(sums, id).update(set, 2)));
    for (let value = 4; value <= 6; value += 1) await Promise.all(ids(4, 'round').map((id) => engine.handle(id).signal(add, value)));
    const ends = await Promise.all(ids(4, 'round').map((id) => engine.handle(rounds, id).result()));
    const runs = await engine.count({ type: rounds });
    await engine.close();

    engine = await open(dir, over(1));
    await engine.handle('id0').resume();
    const last = await engine.handle(sums, 'id0').update(set, 5);
    await Promise.all(ids(6).map((id) => engine.signalWithStart(sums, { id, input: 0, signal: finish, value: undefined })));
    const results = await Promise.all(ids(6).map((id) => engine.handle(sums, id).result()));
    await engine.close();
    print({ driven, answers, paused: held.paused, busy, more, ends, runs, last, results });
  `);
  expect(told.driven).toEqual(Array(5).fill([3, 6, true, 6]));
  expect(told.answers).toEqual(Array(6).fill(11));
  expect(told.paused).toBe(true);
  expect(told.busy).toMatch(/^BusyError/);
  expect(told.more).toEqual(Array(5).fill(13));
  expect(told.ends.map((end: any) => end.sum)).toEqual(Array(4).fill(21));
  expect(told.runs).toBe(12);
  expect(told.last).toBe(16);
  expect(told.results).toEqual([16, 13, 13, 13, 13, 13]);
});

test('what only one thread could use does not cross: transferables are copied, the rest is refused', async () => {
  const told = await run(`
    const engine = await open(dir, workers(2));
    const bytes = new Uint8Array([1, 2, 3]);
    const { input } = await engine.execute(where, bytes);
    const { input: buffer } = await engine.execute(where, bytes.buffer).catch((error) => ({ input: String(error) }));
    const { MessageChannel } = require('node:worker_threads');
    const refused = [];
    for (const value of [() => 1, new MessageChannel().port1, new SharedArrayBuffer(8), Symbol('s'), new WeakRef({})]) {
      refused.push(await refusal(() => engine.start(where, value)));
      refused.push(await refusal(() => engine.start(where, { deep: [value] })));
    }
    const data = await refusal(() => open(':memory:', workers(1, { workerData: { no: () => 1 } })));
    await engine.close();
    print({ input: Array.from(input), buffer: typeof buffer === 'string' ? buffer : Array.from(new Uint8Array(buffer)), left: bytes.length, refused, data });
    process.exit(0);
  `);
  expect(told.input).toEqual([1, 2, 3]);
  expect(told.buffer).toEqual([1, 2, 3]);
  expect(told.left).toBe(3);
  for (const text of told.refused) expect(text).toMatch(/^TypeError: .*cannot be recorded/);
  expect(told.refused.filter((text: string) => /deep/.test(text)).length).toBe(5);
  expect(told.data).toMatch(/workers\.workerData/);
});

test('two threads that load other code under the same name are told apart', async () => {
  const told = await run(
    `print(await refusal(() => open(':memory:', workers(2, { module: fixture('changed.cjs') }))));`,
  );
  expect(told).toMatch(/^TypeError: the workers have different code: workflow 'flow' is not the same in both/);
});

test('another process cannot open the directory of a group, and says whose it is', async () => {
  const told = await run(`
    const engine = await open(dir, workers(2));
    const { spawnSync } = require('node:child_process');
    const script = 'require(process.argv[1]).open(process.argv[2]).then(() => console.log("open"), (e) => console.log(e.name))';
    const { stdout } = spawnSync(process.execPath, ['-e', script, ${JSON.stringify(resolve(__dirname, '../dist/index.js'))}, dir], { encoding: 'utf8' });
    await engine.close();
    const late = [];
    const handle = engine.handle(gate, 'x');
    for (const call of [() => handle.signal(go, 1), () => handle.query(status), () => handle.result(), () => handle.describe(),
      () => handle.cancel(), () => engine.count(), () => engine.metrics()]) late.push((await refusal(call)).split(':')[0]);
    print({ stdout: stdout.trim(), late });
  `);
  expect(told.stdout).toBe('DirectoryLockedError');
  expect(new Set(told.late)).toEqual(new Set(['ClosedError']));
});
