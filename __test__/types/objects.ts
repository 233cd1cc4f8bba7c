/** Objects: what is inferred, and what is refused. */
import { object, open, workflow, type JsonPatch, type ObjectClient, type ObjectContext, type StateOf } from 'fusee';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** Compiles only if `value` has exactly the type `Expected`. */
declare function is<Expected>(): <Actual>(
  value: Actual,
  ...same: Equal<Actual, Expected> extends true ? [] : [never]
) => void;

export const cart = object('cart', {
  state: () => ({ items: [] as string[] }),
  handlers: {
    add: async (ctx, sku: string) => {
      await ctx.sleep('1s');
      is<string>()(ctx.id);
      return ctx.state.items.push(sku);
    },
    clear: (ctx) => {
      ctx.state = { items: [] };
    },
  },
  shared: { count: (ctx) => ctx.state.items.length, at: (ctx, index?: number) => ctx.state.items.at(index ?? 0) },
});
export const plain = object('plain', {
  state: () => 0,
  handlers: {
    inc: async (ctx, by: number) => {
      ctx.state += by;
      return ctx.state;
    },
  },
});

object('bad', {
  state: () => ({ items: [] as string[] }),
  handlers: {},
  // @ts-expect-error shared handlers cannot change the state
  shared: { add: (ctx, sku: string) => ctx.state.items.push(sku) },
});
// @ts-expect-error a handler takes one input
object('bad', { state: () => 0, handlers: { two: (_ctx, a: number, b: number) => a + b } });
object('bad', {
  state: () => 0,
  handlers: {
    // @ts-expect-error an object waits for calls, not for signals
    waits: (ctx) => ctx.waitFor('x'),
  },
});

async function helper(ctx: ObjectContext<number>): Promise<number> {
  return ctx.step('s', () => ctx.state);
}
object('helped', { state: () => 0, handlers: { go: (ctx) => helper(ctx) } });

export const caller = workflow('caller', async (ctx) => {
  is<number>()(await ctx.object(cart, 'u1').add('sku'));
  is<number>()(await ctx.object(cart, 'u1').count());
  // @ts-expect-error calls of workflows have no options
  await ctx.object(cart, 'u1').add('sku', { id: 'x' });
  // @ts-expect-error a text is needed
  await ctx.object(cart, 'u1').add();
});

export async function calls(): Promise<void> {
  const engine = await open(':memory:', { objects: [cart, plain], workflows: [caller] });
  const client = engine.object(cart, 'u1');
  is<ObjectClient<typeof cart>>()(client);
  is<Promise<number>>()(client.add('sku'));
  is<Promise<number>>()(client.add('sku', { id: 'c1', timeout: '1s', actor: 'ann' }));
  is<Promise<number>>()(client.count());
  is<Promise<void>>()(client.clear(undefined, { id: 'c2' }));
  is<Promise<string | undefined>>()(client.at());
  is<Promise<string | undefined>>()(client.at(1, { timeout: '1s' }));
  is<Promise<number>>()(engine.object(plain, 'x').inc(2));
  // @ts-expect-error a text
  await client.add(1);
  // @ts-expect-error the state is not for callers
  void client.state;
  // @ts-expect-error no such handler
  await client.remove('sku');
  is<{ items: string[] }>()(null! as StateOf<typeof cart>);
  const read = await engine.objects.get(cart, 'u1');
  if (read !== undefined) is<string[]>()(read.state.items);
  const patch: JsonPatch = [{ op: 'add', path: '/items/-', value: 'x' }];
  is<number>()(await engine.objects.patch(cart, 'u1', patch, { version: 1 }));
  is<number>()(await engine.objects.set(plain, 'x', 3));
  // @ts-expect-error the state is a number
  await engine.objects.set(plain, 'x', '3');
  is<number>()(await engine.objects.clear(plain, 'x', { actor: 'ann' }));
  is<boolean>()(await engine.objects.delete(plain, 'x'));
}
