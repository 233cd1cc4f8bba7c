/** Processes that work in a directory until they are killed. */
import { spawn } from 'node:child_process';
import { join, resolve } from 'node:path';

const scripts = resolve(__dirname, '../../tests/kill');

/** How a process ended. */
export interface End {
  readonly code: number | null;
  readonly signal: string | null;
}

/**
 * One process: hears the lines of JSON that it prints, and kills it once `most` of them counted.
 *
 * @param script the file's name in tests/kill
 * @param hear whether the line counts
 */
export async function live<Line>(
  script: string,
  args: readonly string[],
  most: number,
  hear: (line: Line) => boolean,
): Promise<End> {
  const child = spawn(process.execPath, [join(scripts, script), ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let rest = '';
  let counted = 0;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop()!; // what has no end yet, or was cut off by the kill
    for (const line of lines) {
      if (hear(JSON.parse(line) as Line) && ++counted >= most) child.kill('SIGKILL');
    }
  });
  const [code, signal] = await new Promise<[number | null, string | null]>((done) =>
    child.once('close', (...ended) => done(ended)),
  );
  return { code, signal };
}
