'use strict';
// Builds `dist/` from `js/`: the whole SDK in one file, since a process that loads eighty small ones spends three times as
// long on it, and so does each worker thread; and beside it an entry for each name by which it is loaded. Entries that a
// process seldom loads are files of their own: they use the package as users do.

const fs = require('node:fs');
const path = require('node:path');
const esbuild = require('esbuild');

const root = path.resolve(__dirname, '..');
const dist = path.join(root, 'dist');
const whole = path.join(dist, 'fusee.js');
const apart = ['eslint'];

main();

function main() {
  fs.rmSync(dist, { recursive: true, force: true });
  bundle('js/whole.ts', whole);
  for (const name of apart) bundle(`js/${name}.ts`, path.join(dist, `${name}.js`));
  const { index, testing } = require(whole);
  write('index', exportsOf(index, 'index'));
  write('testing', exportsOf(testing, 'testing'));
  write('bootstrap', `require('./fusee.js').bootstrap();\n`);
  write('bin/fusee', `require('../fusee.js').command();\n`, '#!/usr/bin/env node\n');
}

function bundle(entry, outfile) {
  esbuild.buildSync({
    absWorkingDir: root,
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    packages: 'external',
    sourcemap: true,
    logLevel: 'warning',
  });
}

/** An entry whose names `import` finds without running it. */
function exportsOf(namespace, name) {
  const names = Object.keys(namespace);
  return `module.exports = require('./fusee.js').${name};\n0 && (module.exports = { ${names.join(', ')} });\n`;
}

function write(name, text, first = '') {
  const file = path.join(dist, `${name}.js`);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, `${first}'use strict';\n${text}`, { mode: first === '' ? 0o644 : 0o755 });
}
