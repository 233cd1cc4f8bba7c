import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

/** How a script ended. */
export interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly out: string;
  readonly err: string;
  readonly ms: number;
}

const dist = resolve(__dirname, '../../dist/index.js');

/**
 * Runs a script in a process of its own, with the built package as `fusee`, a new folder as `dir` and `tick()`, which
 * is a round of the event loop. @param onOut is told what it has written so far
 */
export function runScript(
  body: string,
  onOut?: (out: string, kill: (signal: NodeJS.Signals) => void) => void,
): Promise<Ended> {
  const folder = mkdtempSync(join(tmpdir(), 'fusee-test-'));
  const source = `
    const fusee = require(${JSON.stringify(dist)});
    const { open, workflow, signal } = fusee;
    const dir = ${JSON.stringify(join(folder, 'data'))};
    const tick = () => new Promise((resolve) => setImmediate(resolve));
    const quiet = { debug() {}, info() {}, warn() {}, error() {} };
    (async () => { ${body} })();
  `;
  const began = Date.now();
  return new Promise((done) => {
    const child = spawn(process.execPath, ['-e', source], { stdio: ['ignore', 'pipe', 'pipe'] });
    let [out, err] = ['', ''];
    child.stdout.on('data', (data) => {
      out += data;
      onOut?.(out, (signal) => child.kill(signal));
    });
    child.stderr.on('data', (data) => (err += data));
    const overdue = setTimeout(() => child.kill('SIGKILL'), 120_000);
    child.on('close', (code, signal) => {
      clearTimeout(overdue);
      rmSync(folder, { recursive: true, force: true });
      done({ code, signal, out, err, ms: Date.now() - began });
    });
  });
}
