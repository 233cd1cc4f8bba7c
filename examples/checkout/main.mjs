// An order: a payment that is tried again, an approval that may come late, and a child workflow for the shipping.
// `node examples/checkout/main.mjs`

import { open, signal, workflow, NonRetryableError } from 'fusee';

const approval = signal('approval');

/** A child workflow: it has an id and a history of its own. */
const ship = workflow('ship', async (ctx, { address, items }) => {
  const label = await ctx.step('label', (step) => ({ tracking: `T-${step.idempotencyKey.slice(0, 8)}`, address }));
  await ctx.step('hand over', () => carrier.push({ ...label, items }));
  return label.tracking;
});

const checkout = workflow('checkout', async (ctx, order) => {
  const total = order.items.reduce((sum, { price }) => sum + price, 0);

  // Tried again with growing waits, which outlive a restart. The key is the same each time, so one charge is made.
  const charge = await ctx.step('charge', (step) => charges.make(total, step.idempotencyKey, step.attempt), {
    retry: { maxAttempts: 5, initialInterval: '10ms', backoff: 2 },
    timeout: '5s',
  });

  if (total > 100) {
    const isApproved = await ctx.waitFor(approval, { timeout: '1d', orElse: false });
    if (!isApproved) throw new NonRetryableError('the order was not approved');
  }

  const tracking = await ctx.run(ship, { address: order.address, items: order.items.length });
  return { charge, total, tracking };
});

// What lies outside, played here: a provider that is down for the first two attempts, and a carrier.
const charges = {
  made: new Map(),
  make(amount, key, attempt) {
    console.log(`charge of ${amount}, attempt ${attempt}`);
    if (attempt < 3) throw new Error('the provider does not answer');
    if (!this.made.has(key)) this.made.set(key, { id: `charge-${this.made.size + 1}`, amount });
    return this.made.get(key);
  },
};
const carrier = [];

const engine = await open(':memory:', { workflows: [checkout, ship] });
const order = { address: '1 Main Street', items: [{ price: 80 }, { price: 45 }] };
const run = await engine.start(checkout, order, { id: 'order-1' });
await run.signal(approval, true, { actor: 'sales' });
const { charge, total, tracking } = await run.result();
console.log(`paid ${total} with ${charge.id}, shipped as ${tracking}, ${carrier.length} parcel`);

// A second start with the same id and input finds the run that is there, or that was: no second charge is made.
const refused = await engine
  .start(checkout, order, { id: 'order-1', idReusePolicy: 'rejectDuplicate' })
  .catch((error) => error.name);
console.log(`started again: ${refused}; charges made: ${charges.made.size}`);
await engine.close();
