import { open, task, type EngineEvents } from 'fusee';
import { engineOf, rejection } from './support/engines';

const spend = task('spend', async (ctx, ms: number) => {
  await engineNow?.sleep(ms);
  return ctx.attempt;
});
/** Lets a task take its time on the virtual clock. */
let engineNow: { sleep: (ms: number) => Promise<void> } | undefined;

const held = () => {
  const waiting: (() => void)[] = [];
  return {
    wait: () => new Promise<void>((resolve) => waiting.push(resolve)),
    release: () => waiting.splice(0).forEach((go) => go()),
  };
};

describe('a queue that follows its load', () => {
  test('gets slots for what waits, in steps, and gives them back', async () => {
    const gate = held();
    engineNow = { sleep: () => gate.wait() };
    const engine = await engineOf([], { tasks: [spend], queues: { mail: { concurrency: { min: 1, max: 10 } } } });
    const scaled: EngineEvents['scale'][] = [];
    engine.on('scale', (event) => scaled.push(event));
    const tasks = await engine.enqueueMany(
      spend,
      Array.from({ length: 300 }, () => 1),
      { queue: 'mail' },
    );
    await engine.advance('1s');
    expect((await engine.queue('mail').stats()).concurrency).toBe(5);
    await engine.advance('1s');
    expect(await engine.queue('mail').stats()).toMatchObject({ concurrency: 10, running: 10 });
    expect(scaled.map(({ queue, from, to }) => [queue, from, to])).toEqual([
      ['mail', 1, 5],
      ['mail', 5, 10],
    ]);
    engineNow = undefined;
    gate.release();
    await Promise.all(tasks.map((settled: any) => settled.value.result()));
    await engine.advance('10m');
    expect((await engine.queue('mail').stats()).concurrency).toBe(1);
    expect(scaled.at(-1)).toMatchObject({ type: 'scale', from: 2, to: 1 });
    await expect(engine.queue('mail').setConcurrency(3)).rejects.toThrow(/follows its load.*\{ min, max \}/);
    await expect(engine.queue('default').setConcurrency({ min: 1, max: 2 })).rejects.toThrow(/give a number/);
  });

  test('takes other bounds while it runs, and keeps them over a crash', async () => {
    const gate = held();
    engineNow = { sleep: () => gate.wait() };
    const engine = await engineOf([], { tasks: [spend], queues: { mail: { concurrency: { min: 1, max: 10 } } } });
    const inputs = Array.from({ length: 300 }, () => 1);
    const tasks = await engine.enqueueMany(spend, inputs, { queue: 'mail' });
    await engine.queue('mail').setConcurrency({ min: 3, max: 4 });
    expect(await engine.queue('mail').stats()).toMatchObject({ concurrency: 3, running: 3 });
    await engine.advance('1m');
    expect((await engine.queue('mail').stats()).concurrency).toBe(4);
    await engine.crash();
    await engine.advance('1m');
    expect((await engine.queue('mail').stats()).concurrency).toBe(4);
    engineNow = undefined;
    gate.release();
    await Promise.all(tasks.map((settled: any) => settled.value.result()));
    for (const [bounds, message] of [
      [{ min: 2, max: 1 }, /is 2, which is more than its max, 1/],
      [{ min: 1, max: 2, scale: {} }, /has no option 'scale'/],
      [{ min: 1 }, /max of the concurrency of queue 'mail' must be/],
    ] as const) {
      expect((await rejection(engine.queue('mail').setConcurrency(bounds as any))).message).toMatch(message);
    }
  });

  test('asks for none while it is paused, and for what waits when it goes on', async () => {
    const gate = held();
    engineNow = { sleep: () => gate.wait() };
    const asked: number[] = [];
    const scale = (_queue: string, desired: number) => {
      asked.push(desired);
      return desired;
    };
    const engine = await engineOf([], { tasks: [spend], queues: { mail: { concurrency: { min: 1, max: 8, scale } } } });
    await engine.queue('mail').pause();
    const inputs = Array.from({ length: 300 }, () => 1);
    const tasks = await engine.enqueueMany(spend, inputs, { queue: 'mail' });
    await engine.advance('1m');
    expect(asked).toEqual([1]);
    await engine.queue('mail').resume();
    await engine.advance('1m');
    expect(Math.max(...asked)).toBeGreaterThan(1);
    engineNow = undefined;
    gate.release();
    await Promise.all(tasks.map((settled: any) => settled.value.result()));
  });

  test('asks whoever provides its slots, and takes what is answered or reported', async () => {
    const asked: number[] = [];
    let answer: (slots: number | undefined) => void = () => undefined;
    const scale = (queue: string, desired: number) => {
      asked.push(desired);
      expect(queue).toBe('mail');
      return new Promise<number | undefined>((resolve) => (answer = resolve));
    };
    const engine = await engineOf([], { tasks: [spend], queues: { mail: { concurrency: { min: 2, max: 8, scale } } } });
    const one = await engine.enqueue(spend, 1, { queue: 'mail' });
    await engine.idle();
    expect(asked).toEqual([2]);
    expect((await engine.queue('mail').stats()).concurrency).toBe(0);
    answer(2);
    expect(await one.result()).toBe(1);
    engine.queue('mail').reportCapacity(5);
    expect((await engine.queue('mail').stats()).concurrency).toBe(5);
  });

  test('does not count an answer that comes after a report', async () => {
    let answer: (slots: number) => void = () => undefined;
    const scale = () => new Promise<number>((resolve) => (answer = resolve));
    const engine = await engineOf([], { tasks: [spend], queues: { mail: { concurrency: { min: 1, max: 8, scale } } } });
    await engine.idle();
    engine.queue('mail').reportCapacity(4);
    answer(1);
    await engine.idle();
    expect((await engine.queue('mail').stats()).concurrency).toBe(4);
  });

  test.each([
    ['throws', () => Promise.reject(new Error('no machines')), /no machines/],
    ['answers nonsense', () => -1, /whole number of slots or undefined, not -1/],
  ])('warns of a scaler that %s', async (_what, scale: any, message) => {
    const warnings: any[] = [];
    const logger = { debug() {}, info() {}, warn: (text: string) => void warnings.push(text), error() {} };
    const queues = { mail: { concurrency: { min: 1, max: 8, scale } } };
    const engine = await open(':memory:', { tasks: [spend], queues, logger });
    await new Promise((resolve) => setImmediate(resolve));
    await engine.queue('mail').stats();
    expect(warnings.join()).toMatch(message);
    await engine.close();
  });

  test.each([
    [{ min: 3, max: 2 }, /min of the concurrency of queue 'q' is 3, which is more than its max, 2/],
    [{ min: 0, max: 0 }, /max of the concurrency of queue 'q' must be a whole number from 1, not 0/],
    [{ min: 1 }, /max of the concurrency/],
    [{ min: 1, max: 2, most: 3 }, /has no option 'most'/],
    [{ min: 1, max: 2, scale: { interval: 0 } }, /interval of the concurrency of queue 'q' must be from 1 ms/],
    [{ min: 1, max: 2, scale: { drainTime: '0s' } }, /drainTime/],
    [{ min: 1, max: 2, scale: { slo: { urgent: '1s' } } }, /has no option 'urgent'/],
    [{ min: 1, max: 2, scale: { slo: { high: 0 } } }, /slo.high/],
  ])('refuses %j', async (concurrency: any, message) => {
    expect((await rejection(open(':memory:', { queues: { q: { concurrency } } }))).message).toMatch(message);
  });

  test('refuses reports where its slots come from its options', async () => {
    const engine = await engineOf([], { queues: { mail: { concurrency: { min: 1, max: 2 } } } });
    expect(() => engine.queue('mail').reportCapacity(1)).toThrow(/gets its slots from its option concurrency/);
    expect(() => engine.queue('default').reportCapacity(1)).toThrow(TypeError);
  });
});
