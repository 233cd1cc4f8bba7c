// A mail queue: retries, a rush by priority, one mail at a time for each customer, and what has died is sent again.
// `node examples/queue/main.mjs`

import { task } from 'fusee';
import { testEngine } from 'fusee/testing';

const sent = [];
let isDown = true;

const mail = task(
  'mail',
  async (ctx, { to, text }) => {
    if (to === 'bob' && isDown) throw new Error('the mail server of bob is down');
    sent.push(`${text} to ${to}`);
    return ctx.attempt;
  },
  {
    queue: 'mail',
    retry: { maxAttempts: 3, initialInterval: '1m', jitter: false },
    limits: [{ name: 'customer', key: ({ to }) => to }],
  },
);

// The real engine under a virtual clock; open('./data', …) takes the same options.
const engine = await testEngine({
  tasks: [mail],
  queues: { mail: { concurrency: 1 } },
  limits: { customer: { concurrency: 1 } },
});

await engine.queue('mail').pause();
const [, bob] = await engine.enqueueMany(mail, [
  { to: 'ada', text: 'newsletter' },
  { to: 'bob', text: 'newsletter' },
]);
await engine.enqueue(mail, { to: 'eve', text: 'password reset' }, { priority: 'critical' });
await engine.queue('mail').resume();
await engine.idle();
console.log(sent.join(', '));

await engine.advance('10m');
const { status, attempts } = await bob.value.describe();
console.log(`the mail to bob is ${status} after ${attempts} attempts`);

isDown = false;
console.log(`started again: ${await engine.retry({ status: 'dead' })}`);
await engine.idle();
console.log(sent.at(-1));
await engine.close();
