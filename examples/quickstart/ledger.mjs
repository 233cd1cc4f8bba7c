// The outside: a ledger in a file that takes a row once for each key, as a payment provider does with an idempotency key.

import { closeSync, existsSync, fdatasyncSync, openSync, readFileSync, truncateSync, writeSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

const ledgers = new Map();

/** Adds a row, unless there is one of this key. Durable when it resolves; takes a millisecond, as a near service does. */
export async function post(path, key, row) {
  await setTimeout(1);
  if (!ledgers.has(path)) ledgers.set(path, open(path));
  const { keys, file } = ledgers.get(path);
  if (keys.has(key)) return;
  writeSync(file, `${key} ${JSON.stringify(row)}\n`);
  fdatasyncSync(file);
  keys.add(key);
}

/** All rows, with their keys. */
export function rowsOf(path) {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1); // without a last line that was cut off
  return lines.map((line) => ({
    key: line.slice(0, line.indexOf(' ')),
    row: JSON.parse(line.slice(line.indexOf(' '))),
  }));
}

function open(path) {
  const keys = new Set(rowsOf(path).map(({ key }) => key));
  if (existsSync(path)) truncateSync(path, readFileSync(path).lastIndexOf('\n') + 1);
  else closeSync(openSync(path, 'w'));
  return { keys, file: openSync(path, 'a') };
}
