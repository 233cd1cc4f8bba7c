import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { live } from './support/lives';

const root = resolve(__dirname, '..');
const KILLS = 4;
const PERIOD_MS = 20;

interface Line {
  readonly ran?: string;
  readonly task?: string;
  readonly key?: string;
  readonly fires?: number;
  readonly finished?: true;
  readonly warning?: string;
}

test('a process that is killed with a schedule under way makes each time once, and those of its death up (LAW-3, LAW-7)', async () => {
  const parent = join(root, 'target/kill');
  mkdirSync(parent, { recursive: true });
  const place = mkdtempSync(join(parent, '/'));
  const paths = [join(place, 'fusee'), join(place, 'effects')];
  const keys: string[] = [];
  const tasks = new Set<string>();
  const ran = new Set<string>();
  const complaints: string[] = [];
  let fires = 0;
  let finished = false;
  const hear = (line: Line): boolean => {
    if (line.warning !== undefined) complaints.push(line.warning);
    if (line.ran !== undefined) ran.add(line.ran);
    if (line.task !== undefined) {
      tasks.add(line.task);
      keys.push(line.key!);
    }
    if (line.fires !== undefined) fires = line.fires;
    if (line.finished === true) finished = true;
    return line.ran !== undefined;
  };
  for (let number = 0; number < KILLS; number += 1) {
    const { signal } = await live('schedule-child.mjs', ['work', ...paths], 5 + 4 * number, hear);
    expect(signal).toBe('SIGKILL');
  }
  const { code } = await live('schedule-child.mjs', ['finish', ...paths], Infinity, hear);
  expect({ code, finished, complaints }).toEqual({ code: 0, finished: true, complaints: [] });

  const times = keys.map((key) => Date.parse(key.slice('beat@'.length))).sort((a, b) => a - b);
  expect(times.length).toBe(fires);
  expect(times.length).toBeGreaterThanOrEqual(20);
  // One task a time, and no time left out, however long the process was dead.
  times.forEach((time, index) => expect(time).toBe(times[0]! + index * PERIOD_MS));
  for (const id of ran) expect(tasks.has(id)).toBe(true);
  const byKey = new Map<string, string>();
  for (const line of readFileSync(join(place, 'effects'), 'utf8').trim().split('\n')) {
    const [key, id] = line.split(' ') as [string, string];
    expect(byKey.get(key) ?? id).toBe(id);
    byKey.set(key, id);
  }
  expect(byKey.size).toBe(tasks.size);
  rmSync(place, { recursive: true });
}, 120_000);
