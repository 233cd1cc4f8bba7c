import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';

const root = resolve(__dirname, '..');
const KILLS = 4;

interface Line {
  readonly open?: true;
  readonly acknowledged?: string;
  readonly name?: string;
  readonly result?: string;
  readonly is?: string;
  readonly finished?: true;
  readonly warning?: string;
}

/** One process; killed once it has told of `results` results. */
async function life(mode: string, place: string, number: number, results: number, hear: (line: Line) => void) {
  const args = [
    join(root, 'tests/kill/task-child.mjs'),
    mode,
    join(place, 'fusee'),
    join(place, 'effects'),
    String(number),
  ];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let rest = '';
  let heard = 0;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop()!; // what has no end yet, or was cut off by the kill
    for (const line of lines.map((each) => JSON.parse(each) as Line)) {
      hear(line);
      if (line.acknowledged !== undefined && ++heard >= results) child.kill('SIGKILL');
    }
  });
  const [code, signal] = await new Promise<[number | null, string | null]>((done) =>
    child.once('close', (...ended) => done(ended)),
  );
  return { code, signal };
}

test('a process that is killed with tasks in flight loses no acknowledged one and gives none a second result (LAW-1, LAW-3, LAW-7)', async () => {
  const parent = join(root, 'target/kill');
  mkdirSync(parent, { recursive: true });
  const place = mkdtempSync(join(parent, '/'));
  const names = new Map<string, string>();
  const results = new Map<string, string>();
  const complaints: string[] = [];
  let finished = false;
  const hear = (line: Line): void => {
    if (line.warning !== undefined) complaints.push(line.warning);
    if (line.acknowledged !== undefined) names.set(line.acknowledged, line.name!);
    if (line.finished === true) finished = true;
    if (line.result === undefined) return;
    const before = results.get(line.result);
    if (before !== undefined && before !== line.is) complaints.push(`${line.result}: ${before}, then ${line.is}`);
    results.set(line.result, line.is!);
  };
  for (let number = 0; number < KILLS; number += 1) {
    const { signal } = await life('work', place, number, 40 + 30 * number, hear);
    expect(signal).toBe('SIGKILL');
  }
  const { code } = await life('finish', place, KILLS, Infinity, hear);
  expect({ code, finished, complaints }).toEqual({ code: 0, finished: true, complaints: [] });

  expect(names.size).toBeGreaterThanOrEqual(300);
  for (const [id, name] of names) expect(results.get(id)?.split('/')[0]).toBe(name);
  // All attempts of a task share a key, and no other task has it.
  const keys = new Map<string, string>();
  for (const line of readFileSync(join(place, 'effects'), 'utf8').trim().split('\n')) {
    const [key, name] = line.split(' ') as [string, string];
    expect(keys.get(key) ?? name).toBe(name);
    keys.set(key, name);
  }
  expect(new Set(keys.values()).size).toBe(keys.size);
  rmSync(place, { recursive: true });
}, 120_000);
