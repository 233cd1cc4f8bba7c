// A process that enqueues in transactions, to be killed. work: until then. finish: says which tasks there are.

import { writeSync } from 'node:fs';
import { open, task } from 'fusee';

const [mode, dir, life] = process.argv.slice(2);
const tell = (what) => writeSync(1, `${JSON.stringify(what)}\n`);
const warn = (message) => tell({ warning: message });
const logger = { debug() {}, info() {}, warn, error: warn };

const part = task('part', (ctx) => ctx.parents.length);
const engine = await open(dir, { tasks: [part], queues: { default: { concurrency: 20 } }, dev: false, logger });
if (mode === 'work') {
  for (let count = 0; ; count += 1) {
    const transaction = `${life}-${count}`;
    const adding = engine.atomic((tx) => {
      const first = tx.enqueue(part, undefined, { tags: { transaction } });
      const second = tx.enqueue(part, undefined, { tags: { transaction }, after: [first] });
      tx.enqueue(part, undefined, { tags: { transaction }, after: [first, second] });
    });
    await adding;
    tell({ acknowledged: transaction });
  }
}
for await (const { id, tags } of engine.tasks()) {
  tell({ task: id, of: tags.transaction, parents: await engine.handle(part, id).result() });
}
await engine.close();
tell({ finished: true });
