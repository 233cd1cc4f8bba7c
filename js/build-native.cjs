'use strict';

// Builds the addon and lays it beside package.json as fusee.<triple>.node, where js/native.ts looks for it.
// Runs from `prepare`, in a checkout or a git dependency; nothing is built or downloaded when the published
// package is installed. Needs only Node.js and cargo.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const root = path.resolve(__dirname, '..');

// What LLVM copies into its callers without being asked, by its measure of size, is a tenth of its usual: the copies
// were an eighth of the addon. What is hot and tiny says #[inline], which is heard all the same. For this crate only, not
// for its dependencies, and it reaches all that is linked, since LTO inlines last.
const smaller = ['-C', 'llvm-args=-inline-threshold=25'];

main();

function main() {
  const triple = hostTriple();
  const addon = path.join(root, `fusee.${triple}.node`);
  const built = buildCdylib(triple);
  if (built === undefined) {
    keepPrebuilt(triple, addon);
  } else {
    install(built, addon);
  }
}

/** The name that Node.js addons go by: platform, architecture and, where there are several, the C library. */
function hostTriple() {
  const base = `${process.platform}-${process.arch}`;
  if (process.platform === 'linux') return `${base}-${isGlibc() ? 'gnu' : 'musl'}`;
  if (process.platform === 'win32') return `${base}-msvc`;
  return base;
}

function isGlibc() {
  process.report.excludeNetwork = true;
  return process.report.getReport().header.glibcVersionRuntime !== undefined;
}

/** Path of the library that cargo made, or undefined where there is no cargo. Ends the process if the build fails. */
function buildCdylib(triple) {
  const build = ['rustc', '--lib', '--release', '--locked', '--features', 'node'];
  const args = [...build, '--message-format=json-render-diagnostics', '--', ...smaller];
  const env = { ...process.env };
  if (triple.endsWith('-musl')) {
    // A library that is loaded into a process must share that process's C library.
    env.RUSTFLAGS = `${env.RUSTFLAGS ?? ''} -C target-feature=-crt-static`.trim();
  }
  const cargo = spawnSync('cargo', args, {
    cwd: root,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 1 << 28,
  });
  if (cargo.error?.code === 'ENOENT') return undefined;
  if (cargo.error) fail(`cargo could not be run: ${cargo.error.message}`);
  if (cargo.status !== 0)
    fail(`cargo build failed (${cargo.signal ?? `exit code ${cargo.status}`}); its messages are above.`);
  const library = cargo.stdout.split('\n').map(cdylibOf).findLast(Boolean);
  return library ?? fail('cargo reported no library; is `cdylib` missing from crate-type in Cargo.toml?');
}

/** The file that one line of cargo's output announces, if that line is about our library. */
function cdylibOf(line) {
  if (!line.startsWith('{')) return undefined;
  const message = JSON.parse(line);
  if (message.reason !== 'compiler-artifact' || message.target.name !== 'fusee') return undefined;
  if (!message.target.kind.includes('cdylib')) return undefined;
  return message.filenames.find((file) => /\.(so|dylib|dll)$/.test(file));
}

/** Replaces the file by a rename: a process that runs with the old addon keeps its mapped pages. */
function install(built, addon) {
  if (isSameFile(built, addon)) return;
  const temporary = `${addon}.${process.pid}.tmp`;
  try {
    fs.copyFileSync(built, temporary);
    fs.renameSync(temporary, addon);
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    fail(`${path.basename(addon)} could not be replaced: ${error.message}`);
  }
  console.log(`fusee: built ${path.basename(addon)}`);
}

function isSameFile(built, addon) {
  return fs.existsSync(addon) && fs.readFileSync(built).equals(fs.readFileSync(addon));
}

function keepPrebuilt(triple, addon) {
  if (fs.existsSync(addon)) {
    console.warn(`fusee: no cargo here; keeping ${path.basename(addon)} as it is`);
    return;
  }
  try {
    require.resolve(`fusee-${triple}`, { paths: [root] });
  } catch {
    fail(
      `cargo is missing and no addon for ${triple} is here; install Rust from https://rustup.rs, then run: npm run build`,
    );
  }
}

function fail(message) {
  console.error(`fusee: ${message}`);
  process.exit(1);
}
