import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';

const script = resolve(__dirname, '../tests/kill-rounds.mjs');

describe('a process that is killed (LAW-1, LAW-3, LAW-7)', () => {
  // A sample; the full run is FUSEE_KILLS=300 node tests/kill-rounds.mjs, with its result in docs/results.
  test('loses nothing acknowledged, gives each step one result, forgets no run, and lets nobody else in', () => {
    const kills = process.env['FUSEE_KILLS'] ?? '6';
    const output = execFileSync(process.execPath, [script], {
      encoding: 'utf8',
      env: { ...process.env, FUSEE_KILLS: kills },
    });
    expect(output).toContain(`${kills} kills in`);
  }, 120_000);
});
