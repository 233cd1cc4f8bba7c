// Ours beside the peers: `PEER_BENCH=<directory of the harness> npm run bench:peers -- [--only W1,W3] [--reps 3] …`
//
// The harness is copied to a place of its own, with our adapters beside those that it has. Ours is run, and each peer that
// is installed in PEER_BENCH_ROOT; its report is printed at the end. Flags are handed on to each.

import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const OURS = ['fusee-peer.mjs', 'fusee-queue-peer.mjs'];

/** Adapter, what must be installed for it (below PEER_BENCH_ROOT), and flags of its own. */
const PEERS = [
  ['floors.mjs', 'node_modules/better-sqlite3'],
  ['openworkflow.mjs', 'node_modules/openworkflow', '--backend', 'sqlite'],
  ['dbos.mjs', 'dbos/node_modules/@dbos-inc/dbos-sdk'],
  ['restate.mjs', 'restate/node_modules/@restatedev/restate-sdk'],
  ['temporal.mjs', 'temporal/node_modules/@temporalio/worker', '--n1', '100', '--n2', '100'],
  ['resonate.mjs', 'resonate/node_modules/@resonatehq/sdk'],
  ['bullmq.mjs', 'node_modules/bullmq', '--fsync', 'always'],
  ['pgboss.mjs', 'n22/node_modules/pg-boss'],
  ['graphile.mjs', 'n22/node_modules/graphile-worker'],
];

const root = fileURLToPath(new URL('..', import.meta.url));
const harness = process.env.PEER_BENCH;
if (harness === undefined || !existsSync(join(harness, 'durable.mjs'))) {
  console.error('PEER_BENCH must name the directory of the harness (the one with durable.mjs)');
  process.exit(2);
}
const installed = process.env.PEER_BENCH_ROOT ?? join(os.tmpdir(), 'peer-bench');
mkdirSync(installed, { recursive: true });
buildFloor();

const parent = join(root, 'target/peers');
mkdirSync(parent, { recursive: true });
const place = mkdtempSync(join(parent, '/'));
try {
  cpSync(harness, place, { recursive: true });
  for (const ours of OURS) {
    cpSync(join(root, 'bench', ours), join(place, ours));
    run(ours);
  }
  for (const [script, needs, ...flags] of PEERS) {
    if (existsSync(join(installed, needs))) run(script, ...flags);
    else console.log(`${script}: not installed`);
  }
  run('report.mjs');
} finally {
  rmSync(place, { recursive: true, force: true });
}

function run(script, ...flags) {
  console.log(`== ${script} ${flags.join(' ')}`);
  const { status, signal } = spawnSync(process.execPath, [script, ...flags, ...process.argv.slice(2)], {
    cwd: place,
    stdio: 'inherit',
    env: { ...process.env, PEER_BENCH_ROOT: installed, FUSEE_ROOT: root },
  });
  if (status !== 0) console.log(`${script} ended with ${signal ?? status}`);
}

/** The harness has a floor of its own, in C. */
function buildFloor() {
  if (existsSync(join(installed, 'floor'))) return;
  execFileSync('cc', ['-O2', '-o', join(installed, 'floor'), join(harness, 'floor.c')], { stdio: 'inherit' });
}
