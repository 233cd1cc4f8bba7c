// A map over many inputs with native Promise.all, at most four at a time, and a dashboard workflow that is told by signal.
// `node examples/fan-out/main.mjs`

import { setTimeout } from 'node:timers/promises';
import { open, query, signal, workflow } from 'fusee';

const finished = signal('finished');
const status = query('status');

/** Counts what others report, and answers questions meanwhile. */
const dashboard = workflow('dashboard', async (ctx, { expected }) => {
  let words = 0;
  let files = 0;
  ctx.onQuery(status, () => `${files} of ${expected} files`);
  for await (const report of ctx.signals(finished)) {
    words += report.words;
    files += 1;
    if (files === expected) return { files, words };
  }
});

const countWords = workflow('count-words', async (ctx, { texts }) => {
  const board = ctx.handle(dashboard, 'words');
  let next = 0;
  // Lanes are plain async functions. They replay exactly, since results come back in the recorded order.
  const lane = async () => {
    const counts = [];
    while (next < texts.length) {
      const index = next++;
      const words = await ctx.step(`count ${index}`, () => slowCount(texts[index]));
      await board.signal(finished, { index, words });
      counts.push(words);
    }
    return counts;
  };
  const lanes = await Promise.all([lane(), lane(), lane(), lane()]);
  return lanes.flat().reduce((sum, words) => sum + words, 0);
});

async function slowCount(text) {
  await setTimeout(5);
  return text.split(' ').length;
}

const texts = Array.from({ length: 20 }, (_, index) => 'so many words '.repeat(index + 1).trim());
const engine = await open(':memory:', { workflows: [dashboard, countWords] });
const board = await engine.start(dashboard, { expected: texts.length }, { id: 'words' });
console.log(`at first: ${await board.query(status)}`);
const total = await engine.execute(countWords, { texts });
const { files, words } = await board.result();
console.log(`${words} words in ${files} files; the workflow itself counted ${total}`);
await engine.close();
