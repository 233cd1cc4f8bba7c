import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { resolve } from 'node:path';

const examples = resolve(__dirname, '../examples');

/** Runs an example to its end: one that kept the process alive would run into the time limit. */
function run(name: string): string {
  return execFileSync(process.execPath, [resolve(examples, name, 'main.mjs')], {
    encoding: 'utf8',
    timeout: 240_000,
    env: { ...process.env, CI: 'true', NODE_OPTIONS: '' },
  });
}

describe('examples', () => {
  test('are all tried here', () => {
    expect(readdirSync(examples).sort()).toEqual([
      'checkout',
      'fan-out',
      'queue',
      'quickstart',
      'reminders',
      'schedules',
    ]);
  });

  test('quickstart is killed at least three times and ends with the right totals', () => {
    const output = run('quickstart');
    expect(Number(/kills +(\d+)/.exec(output)?.[1])).toBeGreaterThanOrEqual(3);
    expect(output).toMatch(/totals +right +20,000 flights/);
    expect(output).toMatch(/effects +each once/);
  });

  test('checkout tries the payment again, waits for the approval, ships by a child', () => {
    const output = run('checkout');
    expect(output).toContain('charge of 125, attempt 3');
    expect(output).toMatch(/paid 125 with charge-1, shipped as T-\w+, 1 parcel/);
    expect(output).toContain('started again: WorkflowAlreadyStartedError; charges made: 1');
  });

  test('reminders go out on their days under a virtual clock, over a crash', () => {
    const lines = run('reminders').trim().split('\n');
    expect(lines).toEqual([
      'day 0, ada@example.org: welcome',
      'day 11, ada@example.org: your trial ends in three days',
      'day 14, ada@example.org: paid for month 1',
      'day 44, ada@example.org: paid for month 2',
      'day 74, ada@example.org: paid for month 3',
      'cancelled after 3 months',
    ]);
  });

  test('schedules go by the clock of Berlin and make up for a holiday', () => {
    expect(run('schedules').trim().split('\n')).toEqual([
      'sales at 2025-03-29T01:30, sales at 2025-03-30T01:00, sales at 2025-03-31T00:30',
      'after the holiday: 1',
      'made up for: 5',
      '2025-04-08T00:30:00.000Z',
    ]);
  });

  test('queue sends the urgent first, buries what fails, and sends it again', () => {
    expect(run('queue').trim().split('\n')).toEqual([
      'password reset to eve, newsletter to ada',
      'the mail to bob is dead after 3 attempts',
      'started again: 1',
      'newsletter to bob',
    ]);
  });

  test('fan-out counts every file once, in the workflow and on the dashboard', () => {
    const output = run('fan-out');
    expect(output).toContain('at first: 0 of 20 files');
    expect(output).toContain('630 words in 20 files; the workflow itself counted 630');
  });
});

describe('the benchmarks', () => {
  test('run, and refuse a name that they do not know', () => {
    const bench = resolve(__dirname, '../bench/run.mjs');
    const tried = spawnSync(process.execPath, [bench, 'nothing'], { encoding: 'utf8' });
    expect(tried.status).toBe(2);
    expect(tried.stderr).toContain('unknown: nothing. There are: chain');
  });
});
