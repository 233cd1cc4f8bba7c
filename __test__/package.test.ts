import { execFileSync, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const root = resolve(__dirname, '..');

interface Manifest {
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  scripts: Record<string, string>;
  engines: Record<string, string>;
  version: string;
}

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;

/** What may be in the published package: what runs, its types, and what builds the addon where none is prebuilt. */
const allowed = [
  /^package\.json$/,
  /^(README|CHANGELOG|SECURITY)\.md$/,
  /^LICENSE-(MIT|APACHE)$/,
  /^(index|testing|eslint)\.d\.ts$/,
  /^dist\/.+\.js(\.map)?$/,
  /^fusee\.[a-z0-9-]+\.node$/,
  /^js\/build-native\.cjs$/,
  /^src\/.+\.rs$/,
  /^(build\.rs|Cargo\.toml|Cargo\.lock)$/,
];

function packedFiles(): string[] {
  const output = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    encoding: 'utf8',
    shell: process.platform === 'win32',
  });
  const [packed] = JSON.parse(output) as { files: { path: string }[] }[];
  return packed.files.map(({ path }) => path);
}

describe('the package', () => {
  test('holds nothing but what it is meant to hold', () => {
    const surplus = packedFiles().filter((path) => !allowed.some((pattern) => pattern.test(path)));
    expect(surplus).toEqual([]);
  });

  test('runs nothing when it is installed from a registry', () => {
    const scripts = Object.keys(manifest.scripts);
    expect(scripts.filter((name) => ['preinstall', 'install', 'postinstall'].includes(name))).toEqual([]);
  });

  test('has no dependencies at run time', () => {
    expect(manifest.dependencies).toBeUndefined();
    // Platform packages are written by the release, never committed.
    expect(manifest.optionalDependencies).toBeUndefined();
  });

  test('has the version of the crate', () => {
    const crate = /^version = "(.+)"$/m.exec(readFileSync(join(root, 'Cargo.toml'), 'utf8'))?.[1];
    expect(manifest.version).toBe(crate);
  });

  test('is locked without the addresses of a registry', () => {
    expect(readFileSync(join(root, 'package-lock.json'), 'utf8')).not.toMatch(/"resolved":/);
    expect(existsSync(join(root, 'Cargo.lock'))).toBe(true);
  });
});

describe('the crates', () => {
  interface Crate {
    name: string;
    license: string | null;
    source: string | null;
  }

  const cargo = (...args: string[]): string =>
    execFileSync('cargo', args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28 });

  const permissive = ['MIT', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'Zlib', 'Unicode-3.0', 'CC0-1.0'];

  /** Whether one of the licences offered will do; where several apply together, all of them. */
  const isPermissive = (expression: string): boolean =>
    expression
      .replaceAll(/[()]/g, '')
      .split(/ OR |\//)
      .some((offer) => offer.split(' AND ').every((licence) => permissive.includes(licence.trim())));

  test('have licences that let anybody use them, and come from the one registry', () => {
    const { packages } = JSON.parse(cargo('metadata', '--format-version=1', '--locked')) as { packages: Crate[] };
    const sources = new Set(packages.map(({ source }) => source).filter((source) => source !== null));
    expect([...sources]).toEqual([expect.stringMatching(/^registry\+/)]);
    const unfit = packages.filter(({ license }) => license === null || !isPermissive(license));
    expect(unfit.map(({ name, license }) => `${name}: ${license}`)).toEqual([]);
  });

  test('of the engine are at most 25, transitive ones included', () => {
    const lines = cargo('tree', '--locked', '--edges=normal', '--prefix=none', '--format={p}').trim().split('\n');
    const names = new Set(lines.map((line) => line.split(' ')[0]).filter((name) => name !== 'fusee'));
    expect([...names].slice(25)).toEqual([]);
  });
});

test('the addon that was built here is smaller than 4.25 MiB', () => {
  const addons = readdirSync(root).filter((name) => /^fusee\..+\.node$/.test(name));
  expect(addons).not.toEqual([]);
  for (const name of addons) expect(statSync(join(root, name)).size).toBeLessThan(4.25 * 1024 * 1024);
});

describe('the build of the addon without cargo', () => {
  const addon = readdirSync(root).find((name) => /^fusee\..+\.node$/.test(name)) ?? 'fusee.none.node';
  let checkout: string;

  beforeEach(() => {
    checkout = mkdtempSync(join(tmpdir(), 'fusee-build-'));
    mkdirSync(join(checkout, 'js'));
    copyFileSync(join(root, 'js/build-native.cjs'), join(checkout, 'js/build-native.cjs'));
  });

  afterEach(() => rmSync(checkout, { recursive: true }));

  const build = (): { status: number | null; lines: string[] } => {
    const { status, stderr } = spawnSync(process.execPath, [join(checkout, 'js/build-native.cjs')], {
      env: { ...process.env, PATH: '' },
      encoding: 'utf8',
    });
    return { status, lines: stderr.trim().split('\n') };
  };

  test('keeps an addon that fits', () => {
    writeFileSync(join(checkout, addon), 'addon');
    const { status, lines } = build();
    expect(lines).toEqual([expect.stringContaining(`keeping ${addon}`)]);
    expect(status).toBe(0);
    expect(readFileSync(join(checkout, addon), 'utf8')).toBe('addon');
  });

  test('fails with one line that says what to install', () => {
    const { status, lines } = build();
    expect(lines).toEqual([expect.stringMatching(/cargo is missing.*install Rust.*npm run build/)]);
    expect(status).toBe(1);
  });
});
