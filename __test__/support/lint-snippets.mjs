// Lints snippets as if each were a file of the project: [{ filePath, code }] on standard input, and for each the ids
// and messages of what was reported on standard output. A process of its own, because ESLint loads its configuration
// by import(), which jest's sandbox does not have.

import { ESLint } from 'eslint';
import { text } from 'node:stream/consumers';

const snippets = JSON.parse(await text(process.stdin));

// A snippet is no file on disk, so the type checker is told to take it into a project of its own.
const projectService = {
  allowDefaultProject: [...new Set(snippets.map(({ filePath }) => filePath))],
  maximumDefaultProjectFileMatchCount_THIS_WILL_SLOW_DOWN_LINTING: snippets.length + 1,
};
const linter = new ESLint({
  overrideConfig: { files: ['js/**/*.ts'], languageOptions: { parserOptions: { projectService } } },
});

const reports = [];
for (const { filePath, code } of snippets) {
  const [result] = await linter.lintText(code, { filePath });
  reports.push(result.messages.map(({ ruleId, message }) => ({ ruleId, message })));
}
process.stdout.write(JSON.stringify(reports));
