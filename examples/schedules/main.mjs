// A nightly report by the clock of Berlin, over the night when clocks go forward, with a holiday that is made up for.
// `node examples/schedules/main.mjs`

import { task } from 'fusee';
import { testEngine } from 'fusee/testing';

const lines = [];
const report = task('report', (ctx, { of }) => {
  lines.push(`${of} at ${new Date(engine.now()).toISOString().slice(0, 16)}`);
});

// The real engine under a virtual clock; open('./data', …) takes the same options.
const engine = await testEngine({
  now: '2025-03-28T12:00:00Z',
  tasks: [report],
  schedules: {
    nightly: { cron: '30 2 * * *', timezone: 'Europe/Berlin', run: report, input: { of: 'sales' }, catchUp: 3 },
  },
});

await engine.advance('3d');
console.log(lines.splice(0).join(', '));

await engine.schedules.pause('nightly');
await engine.advance('7d');
await engine.schedules.resume('nightly'); // the newest of those that were missed; overlap 'skip' makes one of them
await engine.idle();
console.log(`after the holiday: ${lines.splice(0).length}`);

const missed = await engine.schedules.backfill('nightly', { from: '2025-04-01T00:00:00Z', to: '2025-04-06T00:00:00Z' });
for (const task of missed) await task.result();
console.log(`made up for: ${missed.length}`);
console.log((await engine.schedules.preview('nightly', 1))[0].toISOString());
await engine.close();
