import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { live } from './support/lives';

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

test('a process that is killed with tasks in flight loses no acknowledged one and gives none a second result (LAW-1, LAW-3, LAW-7)', async () => {
  const parent = join(root, 'target/kill');
  mkdirSync(parent, { recursive: true });
  const place = mkdtempSync(join(parent, '/'));
  const paths = [join(place, 'fusee'), join(place, 'effects')];
  const names = new Map<string, string>();
  const results = new Map<string, string>();
  const complaints: string[] = [];
  let finished = false;
  const hear = (line: Line): boolean => {
    if (line.warning !== undefined) complaints.push(line.warning);
    if (line.acknowledged !== undefined) names.set(line.acknowledged, line.name!);
    if (line.finished === true) finished = true;
    const isCounted = line.acknowledged !== undefined;
    if (line.result === undefined) return isCounted;
    const before = results.get(line.result);
    if (before !== undefined && before !== line.is) complaints.push(`${line.result}: ${before}, then ${line.is}`);
    results.set(line.result, line.is!);
    return isCounted;
  };
  for (let number = 0; number < KILLS; number += 1) {
    const { signal } = await live('task-child.mjs', ['work', ...paths, String(number)], 40 + 30 * number, hear);
    expect(signal).toBe('SIGKILL');
  }
  const { code } = await live('task-child.mjs', ['finish', ...paths, String(KILLS)], Infinity, hear);
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
