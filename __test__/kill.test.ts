import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';

const root = resolve(__dirname, '..');

describe('a process that is killed (LAW-1, LAW-3, LAW-7)', () => {
  // A sample; the full run is FUSEE_KILLS=300 node tests/kill-rounds.mjs, with its result in docs/results.
  test('loses nothing acknowledged, gives each step one result, forgets no run, and lets nobody else in', () => {
    const kills = process.env['FUSEE_KILLS'] ?? '6';
    const output = execFileSync(process.execPath, [join(root, 'tests/kill-rounds.mjs')], {
      encoding: 'utf8',
      env: { ...process.env, FUSEE_KILLS: kills },
    });
    expect(output).toContain(`${kills} kills in`);
  }, 120_000);

  test('leaves steps in their middle, which run again by themselves, though nobody asks for anything (LAW-8)', async () => {
    const count = '20';
    const parent = join(root, 'target/kill');
    mkdirSync(parent, { recursive: true });
    const place = mkdtempSync(join(parent, '/'));
    const args = (mode: string) => [join(root, 'bench/recover-child.mjs'), mode, join(place, 'fusee'), count];

    const killed = spawn(process.execPath, args('block'), { env: { ...process.env, BENCH_BLOCK: '1' } });
    await once(killed.stdout, 'data'); // READY: each workflow is in its second step
    killed.kill('SIGKILL');
    await once(killed, 'close');

    const output = execFileSync(process.execPath, args('recover'), { encoding: 'utf8', timeout: 120_000 });
    expect(output).toContain('DONE');
    rmSync(place, { recursive: true });
  });
});
