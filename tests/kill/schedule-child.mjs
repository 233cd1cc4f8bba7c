// A process with a schedule of many times, to be killed. work: until then. finish: says which times have which tasks.

import { appendFileSync, writeSync } from 'node:fs';
import { open, task } from 'fusee';

const [mode, dir, effects] = process.argv.slice(2);
const tell = (what) => writeSync(1, `${JSON.stringify(what)}\n`);
const quiet = {
  debug() {},
  info() {},
  warn: (message) => tell({ warning: message }),
  error: (message) => tell({ warning: message }),
};

const beat = task(
  'beat',
  (ctx) => {
    appendFileSync(effects, `${ctx.idempotencyKey} ${ctx.info.id}\n`);
    tell({ ran: ctx.info.id });
  },
  { retry: { maxAttempts: 100, initialInterval: 1, maxInterval: 5 } },
);

const schedules = { beat: { every: 20, run: beat, overlap: 'allow', catchUp: 1000 } };
const engine = await open(dir, { tasks: [beat], ...(mode === 'work' && { schedules }), dev: false, logger: quiet });
if (mode === 'work') await new Promise((resolve) => setTimeout(resolve, 60_000));
await engine.schedules.pause('beat');
for await (const { id, key } of engine.tasks()) {
  await engine.handle(beat, id).result();
  tell({ task: id, key });
}
tell({ fires: (await engine.schedules.describe('beat')).fires });
await engine.close();
tell({ finished: true });
