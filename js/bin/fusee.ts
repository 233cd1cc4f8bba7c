/**
 * `fusee check`: whether the code of a module fits what is recorded. For a gate before a deploy.
 */
import { Console } from 'node:console';
import { existsSync, readdirSync, statSync } from 'node:fs';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { check, isEngineDirectory, type CheckFailure, type CheckReport } from '../replay/check.js';
import { loadDefinitions } from '../threads/module.js';

const USAGE = `fusee check <module> <directory or file.fjnl>... [--ended] [--json]

Replays recorded runs against the workflows that a module exports.

  <module>     what exports them, as workers load it; and the codecs, where payloads need some
  <directory>  of an engine that is not open: its runs that have not ended; or a directory of .fjnl files
  <file.fjnl>  what handle.export() gave
  --ended      of an engine's directory also runs that have ended, as far as their records are kept
  --json       the report as JSON

Exit code: 0 all runs fit, 1 some do not, 2 bad use, or something that cannot be read.`;

const FIT = 0;
const DIFFERS = 1;
const BAD_USE = 2;

/** What somebody has asked for that cannot be. */
class BadUse extends Error {}

interface Asked {
  readonly module: string;
  readonly places: readonly string[];
  readonly ended: boolean;
  readonly json: boolean;
}

/** Runs the command that this process is, and ends it. */
export function command(): void {
  // The answer alone goes to standard output, whatever the module prints.
  globalThis.console = new Console(process.stderr);
  void main(process.argv.slice(2)).then(({ code, out, err }) => {
    process.stderr.write(err, () => process.stdout.write(out, () => process.exit(code)));
  });
}

async function main(
  args: readonly string[],
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  try {
    if (args[0] === 'help' || args.includes('--help')) return { code: FIT, out: `${USAGE}\n`, err: '' };
    const asked = readArguments(args);
    const report = await checkAll(asked);
    return { code: codeOf(report), out: asked.json ? asJson(report) : asText(report), err: '' };
  } catch (error) {
    const usage = error instanceof BadUse ? `\n\n${USAGE}` : '';
    const said = error instanceof Error ? error.message : String(error);
    return { code: BAD_USE, out: '', err: `fusee: ${said}${usage}\n` };
  }
}

function readArguments(args: readonly string[]): Asked {
  let parsed;
  try {
    const options = { ended: { type: 'boolean' }, json: { type: 'boolean' } } as const;
    parsed = parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw new BadUse((error as Error).message);
  }
  const [command, module, ...places] = parsed.positionals;
  if (command !== 'check') {
    throw new BadUse(command === undefined ? 'a command is missing' : `there is no command '${command}'`);
  }
  if (module === undefined) throw new BadUse('the module is missing');
  if (places.length === 0) throw new BadUse('there is nothing to check: name a directory, or files');
  for (const place of [module, ...places]) if (!existsSync(place)) throw new BadUse(`there is no file ${place}`);
  return { module, places, ended: parsed.values.ended === true, json: parsed.values.json === true };
}

async function checkAll({ module, places, ended }: Asked): Promise<CheckReport> {
  const { workflows, objects, tasks, codecs } = await loadDefinitions(pathToFileURL(path.resolve(module)).href);
  const code = { workflows, objects, tasks: [...tasks.values()], codec: codecs };
  const reports: CheckReport[] = [];
  for (const place of places) {
    const runs = isEngineDirectory(place) ? { dir: place, ended } : { journals: filesOf(place) };
    reports.push(await check({ ...code, ...runs }));
  }
  return {
    checked: reports.reduce((sum, { checked }) => sum + checked, 0),
    failures: reports.flatMap(({ failures }) => failures),
  };
}

/** The file, or those of a directory. */
function filesOf(place: string): string[] {
  if (!statSync(place).isDirectory()) return [place];
  const names = readdirSync(place).filter((name) => name.endsWith('.fjnl'));
  if (names.length === 0) {
    throw new BadUse(`${place} is neither the directory of an engine nor one with .fjnl files`);
  }
  return names.sort().map((name) => path.join(place, name));
}

function codeOf({ failures }: CheckReport): number {
  if (failures.some(({ kind }) => kind !== 'unreadable')) return DIFFERS;
  return failures.length > 0 ? BAD_USE : FIT;
}

function asText({ checked, failures }: CheckReport): string {
  const lines = failures.map((failure) => `${failure.error.message}${sourceOf(failure)}\n`);
  const count = (kind: CheckFailure['kind']): number => failures.filter((failure) => failure.kind === kind).length;
  const parts = [`${checked - failures.length} fit`];
  if (count('differs') > 0) parts.push(`${count('differs')} differ`);
  if (count('undefinedType') > 0) parts.push(`${count('undefinedType')} have no code here`);
  if (count('unreadable') > 0) parts.push(`${count('unreadable')} cannot be read`);
  return `${lines.join('')}${checked} ${checked === 1 ? 'run' : 'runs'} checked: ${parts.join(', ')}\n`;
}

function sourceOf({ kind, source }: CheckFailure): string {
  return source === undefined || kind === 'unreadable' ? '' : ` [${source}]`;
}

function asJson({ checked, failures }: CheckReport): string {
  const rows = failures.map(({ kind, id, runId, type, source, error, difference }) => {
    const { seq, recorded, recordedAt, asked, place } = difference ?? {};
    return { kind, id, runId, type, source, message: error.message, seq, recorded, recordedAt, asked, place };
  });
  return `${JSON.stringify({ checked, failures: rows }, null, 2)}\n`;
}
