// Rust tests under cargo-nextest where it is installed, else under cargo's own runner; then the documentation tests,
// which nextest leaves out. Arguments are handed to the first runner: `npm run test:rust -- torn_tail`.

import { spawnSync } from 'node:child_process';

const build = ['--locked', '--features', 'node,sim'];
const chosen = process.argv.slice(2);
const hasNextest = spawnSync('cargo', ['nextest', '--version'], { stdio: 'ignore' }).status === 0;

run(
  hasNextest
    ? ['nextest', 'run', '--no-tests=pass', ...build, ...chosen]
    : ['test', ...build, '--lib', '--bins', '--tests', ...chosen],
);
if (chosen.length === 0) run(['test', '--doc', ...build]);

function run(args) {
  console.log(`> cargo ${args.join(' ')}`);
  const { status, signal, error } = spawnSync('cargo', args, { stdio: 'inherit' });
  if (status === 0) return;
  console.error(error ? `cargo could not be run: ${error.message}` : `cargo ${args[0]} failed (${signal ?? status})`);
  process.exit(status || 1);
}
