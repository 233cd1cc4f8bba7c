// A subscription: a trial of two weeks, reminders, monthly payments until it is cancelled. Its timers outlive restarts;
// here a virtual clock lets a quarter pass in an instant. `node examples/reminders/main.mjs`

import { signal, workflow } from 'fusee';
import { testEngine } from 'fusee/testing';

const cancelled = signal('cancelled');
const mails = [];

const subscription = workflow('subscription', async (ctx, { email }) => {
  const send = (text) => ctx.step(`mail: ${text}`, () => mails.push(`${day(ctx.info.startedAt)} ${email}: ${text}`));

  await send('welcome');
  // Whichever comes first. A wait that times out takes no signal away.
  if ((await ctx.waitFor(cancelled, { timeout: '11d', orElse: 'on' })) !== 'on') return { months: 0 };
  await send('your trial ends in three days');
  if ((await ctx.waitFor(cancelled, { timeout: '3d', orElse: 'on' })) !== 'on') return { months: 0 };

  for (let months = 1; ; months += 1) {
    await ctx.step(`payment ${months}`, () => ({ paid: true }));
    await send(`paid for month ${months}`);
    if ((await ctx.waitFor(cancelled, { timeout: '30d', orElse: 'on' })) !== 'on') return { months };
  }
});

const engine = await testEngine({ workflows: [subscription] });
const beginMs = engine.now();
const day = () => `day ${Math.round((engine.now() - beginMs) / 86_400_000)},`;

const run = await engine.start(subscription, { email: 'ada@example.org' });
await engine.advance('10d');
await engine.crash(); // as a kill would: the timer goes on, no mail is sent again
await engine.advance('70d');
await run.signal(cancelled);
const { months } = await run.result();

for (const mail of mails) console.log(mail);
console.log(`cancelled after ${months} months`);
await engine.close(); // replays the run once more, and throws if it would go another way now
