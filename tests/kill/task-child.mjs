// A process with tasks in flight, to be killed. work: enqueues until then. finish: lets all end, and says how.

import { appendFileSync, writeSync } from 'node:fs';
import { open, task } from 'fusee';

const [mode, dir, effects, life] = process.argv.slice(2);
const tell = (what) => writeSync(1, `${JSON.stringify(what)}\n`);
const quiet = {
  debug() {},
  info() {},
  warn: (message) => tell({ warning: message }),
  error: (message) => tell({ warning: message }),
};

const pay = task(
  'pay',
  async (ctx, name) => {
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 4));
    // Each attempt has another result: a second one that is recorded would be seen.
    const receipt = `${name}/${ctx.attempt}/${process.pid}`;
    appendFileSync(effects, `${ctx.idempotencyKey} ${name}\n`);
    return receipt;
  },
  { retry: { maxAttempts: 100, initialInterval: 1, maxInterval: 5 } },
);

const engine = await open(dir, { tasks: [pay], queues: { default: { concurrency: 20 } }, dev: false, logger: quiet });
tell({ open: true });
for await (const { id, status } of engine.tasks()) {
  if (status === 'completed') tell({ result: id, is: await engine.handle(pay, id).result() });
}
if (mode === 'work') {
  for (let count = 0; ; count += 1) {
    const names = Array.from({ length: 5 }, (_, at) => `${life}-${count}-${at}`);
    const settled = await engine.enqueueMany(pay, names);
    for (const [at, { value }] of settled.entries()) {
      tell({ acknowledged: value.id, name: names[at] });
      void value.result().then((is) => tell({ result: value.id, is }));
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
for await (const { id } of engine.tasks()) tell({ result: id, is: await engine.handle(pay, id).result() });
await engine.close();
tell({ finished: true });
