import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const root = resolve(__dirname, '..');
const pages = [
  'README.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

interface Block {
  readonly page: string;
  readonly line: number;
  readonly mark: string;
  readonly code: string;
}

function blocksOf(page: string): Block[] {
  const text = readFileSync(join(root, page), 'utf8');
  return [...text.matchAll(/^```(js.*|ts.*)\n([^]*?)^```$/gm)].map((match) => ({
    page,
    line: text.slice(0, match.index).split('\n').length,
    mark: match[1]!,
    code: match[2]!,
  }));
}

const blocks = pages.flatMap(blocksOf);

/** Inside the package, so that `fusee` is this one; in a directory of its own, so that './data' is as well. */
function run(code: string): string {
  const parent = join(root, 'target/snippets');
  mkdirSync(parent, { recursive: true });
  const place = mkdtempSync(join(parent, '/'));
  try {
    writeFileSync(join(place, 'snippet.mjs'), code);
    return execFileSync(process.execPath, ['snippet.mjs'], { cwd: place, encoding: 'utf8', timeout: 120_000 });
  } finally {
    rmSync(place, { recursive: true });
  }
}

describe('code in the pages', () => {
  test('is run, all of it', () => {
    expect(
      blocks.filter(({ mark }) => mark !== 'js run').map(({ page, line, mark }) => `${page}:${line} ${mark}`),
    ).toEqual([]);
    expect(blocks.length).toBeGreaterThanOrEqual(5);
  });

  test.each(blocks.map((block) => [`${block.page}:${block.line}`, block] as const))(
    '%s runs and ends by itself',
    (_, { code }) => {
      run(code);
    },
  );

  test('README.md greets Ada', () => {
    expect(run(blocks[0]!.code)).toContain('Hello, Ada');
  });

  test('links inside the repository lead somewhere', () => {
    const files = new Set(['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', ...pages]);
    const dead: string[] = [];
    for (const page of files) {
      for (const [, target] of readFileSync(join(root, page), 'utf8').matchAll(/\]\((?!https?:|#)([^)#]+)/g)) {
        try {
          readFileSync(resolve(root, page, '..', target!));
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'EISDIR') dead.push(`${page}: ${target}`);
        }
      }
    }
    expect(dead).toEqual([]);
  });
});
