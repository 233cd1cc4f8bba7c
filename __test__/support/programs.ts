/**
 * Random programs of promises: a generator, and an interpreter that runs one in a workflow and notes what every await
 * gave, in order.
 */

/** Numbers that follow from a seed. */
export function chanceOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

export type Node =
  | {
      readonly kind: 'step';
      readonly rounds: number;
      readonly fails: number;
      readonly maxAttempts: number;
      readonly readOnly: boolean;
    }
  | { readonly kind: 'sleep'; readonly ms: number }
  | { readonly kind: 'wait'; readonly signal: number; readonly timeout: number | undefined }
  | { readonly kind: 'condition'; readonly atLeast: number; readonly timeout: number | undefined }
  | { readonly kind: 'iterate'; readonly signal: number; readonly times: number; readonly body: Node | undefined }
  | { readonly kind: 'child'; readonly awaited: boolean }
  | { readonly kind: 'hops'; readonly count: number }
  | { readonly kind: 'draw' }
  | { readonly kind: 'foreign' }
  | { readonly kind: 'sequence' | 'all' | 'race' | 'any' | 'allSettled'; readonly parts: readonly Node[] }
  | { readonly kind: 'float'; readonly part: Node }
  | {
      readonly kind: 'scope';
      readonly cancellable: boolean;
      readonly timeout: number | undefined;
      readonly cancelAfter: number | undefined;
      readonly part: Node;
    };

export interface Action {
  readonly kind: 'signal' | 'update' | 'advance' | 'rounds' | 'cancel' | 'crash';
  readonly value: number;
}

/** A program and what happens to it from outside. */
export interface Program {
  readonly seed: number;
  readonly root: Node;
  /** What the handlers of updates do. */
  readonly handlers: readonly Node[];
  readonly actions: readonly Action[];
}

export const SIGNALS = 2;
export const HANDLERS = 2;

/** The program of a seed. @param hasForeign some of its parts await what does not come from `ctx` */
export function programOf(seed: number, hasForeign = false): Program {
  const chance = chanceOf(seed);
  const below = (bound: number): number => Math.floor(chance() * bound);
  const group = (depth: number, count: number): Node[] => Array.from({ length: count }, () => node(depth - 1));
  const maybe = (ms: number): number | undefined => (chance() < 0.5 ? below(ms) : undefined);
  const leaf = (): Node => {
    if (hasForeign && chance() < 0.15) return { kind: 'foreign' };
    switch (below(10)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const fails = chance() < 0.25 ? 1 + below(2) : 0;
        return { kind: 'step', rounds: below(4), fails, maxAttempts: 1 + below(3), readOnly: chance() < 0.2 };
      }
      case 4:
        return { kind: 'sleep', ms: below(5) * 10 };
      case 5:
        return { kind: 'wait', signal: below(SIGNALS), timeout: maybe(50) };
      case 6:
        return { kind: 'condition', atLeast: 1 + below(6), timeout: maybe(80) };
      case 7:
        return { kind: 'hops', count: 1 + below(3) };
      case 8:
        return { kind: 'child', awaited: chance() < 0.7 };
      default:
        return { kind: 'draw' };
    }
  };
  const node = (depth: number): Node => {
    if (depth <= 0) return leaf();
    switch (below(10)) {
      case 0:
      case 1:
        return { kind: 'sequence', parts: group(depth, 2 + below(3)) };
      case 2:
        return { kind: 'all', parts: group(depth, 1 + below(4)) };
      case 3:
        return { kind: 'race', parts: group(depth, 2 + below(3)) };
      case 4:
        return { kind: 'any', parts: group(depth, 1 + below(3)) };
      case 5:
        return { kind: 'allSettled', parts: group(depth, 1 + below(4)) };
      case 6:
        return {
          kind: 'iterate',
          signal: below(SIGNALS),
          times: 1 + below(3),
          body: chance() < 0.6 ? node(depth - 1) : undefined,
        };
      case 7:
        return { kind: 'float', part: node(depth - 1) };
      case 8: {
        const [timeout, cancelAfter] = [maybe(60), maybe(60)];
        return { kind: 'scope', cancellable: chance() < 0.6, timeout, cancelAfter, part: node(depth - 1) };
      }
      default:
        return leaf();
    }
  };
  const root: Node = { kind: 'sequence', parts: group(3, 2 + below(4)) };
  const actions: Action[] = [];
  for (let count = 4 + below(14); count > 0; count -= 1) {
    const kind = (['signal', 'signal', 'signal', 'advance', 'advance', 'rounds'] as const)[below(6)]!;
    actions.push({ kind, value: kind === 'signal' ? below(SIGNALS) : below(40) });
  }
  for (let count = below(4); count > 0; count -= 1) {
    actions.splice(below(actions.length + 1), 0, { kind: 'update', value: below(HANDLERS + 1) });
  }
  if (chance() < 0.2) actions.splice(below(actions.length), 0, { kind: 'crash', value: 0 });
  if (chance() < 0.2) actions.splice(below(actions.length), 0, { kind: 'cancel', value: 0 });
  const handlers = Array.from({ length: HANDLERS }, () => node(1));
  return { seed, root, handlers, actions };
}

/** Where an interpretation notes what it sees. */
export interface Tracer {
  note(line: string): void;
}

/** Runs a program with the `ctx` of a workflow. `failures` counts, over lives, how often each step has failed. */
export async function interpret(
  ctx: any,
  root: Node,
  tracer: Tracer,
  messages: {
    readonly signals: readonly any[];
    readonly child: any;
    readonly onForeign?: () => void;
    readonly updates?: readonly any[];
    readonly handlers?: readonly Node[];
  },
): Promise<unknown> {
  let counter = 0;
  const note = (path: string, what: unknown): void => {
    counter += 1;
    tracer.note(`${path} ${typeof what === 'string' ? what : JSON.stringify(what)}`);
  };
  const watched = async (path: string, fn: () => unknown): Promise<unknown> => {
    try {
      const value = await fn();
      note(path, value === undefined ? 'undefined' : value);
      return value;
    } catch (error: any) {
      note(path, `threw ${error?.name}: ${String(error?.cause?.message ?? error?.message).slice(0, 60)}`);
      throw error;
    }
  };
  const calm = (path: string, node: Node): Promise<unknown> => run(path, node).catch(() => 'caught');
  const many = (path: string, parts: readonly Node[]): Promise<unknown>[] =>
    parts.map((part, index) => run(`${path}.${index}`, part));
  const run = (path: string, node: Node): Promise<unknown> => watched(path, () => start(path, node));
  const start = async (path: string, node: Node): Promise<unknown> => {
    switch (node.kind) {
      case 'step':
        return ctx.step(
          `step ${path}`,
          async (step: any) => {
            for (let round = 0; round < node.rounds; round += 1) await new Promise((resolve) => setImmediate(resolve));
            if (step.attempt <= node.fails) throw new Error(`fails ${step.attempt}`);
            return { path, attempt: step.attempt };
          },
          {
            ...(node.rounds === 2 && {
              compensate: async (result: any, step: any) => {
                if (step.attempt === 1 && node.fails > 0) throw new Error('not yet');
                return result.path;
              },
            }),
            readOnly: node.readOnly,
            retry: { maxAttempts: node.maxAttempts, initialInterval: 20, jitter: false },
          },
        );
      case 'sleep':
        return ctx.sleep(node.ms);
      case 'wait':
        return ctx.waitFor(
          messages.signals[node.signal],
          ...(node.timeout === undefined ? [] : [{ timeout: node.timeout }]),
        );
      case 'condition':
        return ctx.condition(
          () => counter >= node.atLeast * 2,
          ...(node.timeout === undefined ? [] : [{ timeout: node.timeout }]),
        );
      case 'iterate': {
        let times = 0;
        for await (const value of ctx.signals(messages.signals[node.signal])) {
          note(path, value);
          if (node.body !== undefined) await calm(`${path}.body`, node.body);
          times += 1;
          if (times === node.times) break;
        }
        return times;
      }
      case 'child': {
        if (node.awaited) return ctx.run(messages.child, path);
        const handle = await ctx.start(messages.child, path, { onParentClose: 'cancel' });
        return typeof handle.id;
      }
      case 'hops': {
        for (let hop = 0; hop < node.count; hop += 1) await Promise.resolve();
        return 'hopped';
      }
      case 'draw':
        return [ctx.random(), ctx.random('named'), ctx.uuid(), ctx.now()];
      case 'foreign': {
        await (path.length % 2 === 0
          ? new Promise((resolve) => setImmediate(resolve))
          : new Promise((resolve) => setTimeout(resolve, 1)));
        messages.onForeign?.();
        return ctx.now();
      }
      case 'sequence': {
        for (let index = 0; index < node.parts.length; index += 1) await calm(`${path}.${index}`, node.parts[index]!);
        return 'sequence';
      }
      case 'all':
        return (await Promise.all(many(path, node.parts))).length;
      case 'race':
        return Promise.race(many(path, node.parts));
      case 'any':
        return Promise.any(many(path, node.parts));
      case 'allSettled':
        return (await Promise.allSettled(many(path, node.parts))).map(({ status }) => status);
      case 'scope':
        return ctx.scope(
          async (scope: any) => {
            scope.signal.addEventListener('abort', () => note(path, 'aborted'));
            const part = run(`${path}.in`, node.part);
            if (node.cancelAfter !== undefined) {
              await Promise.race([part, ctx.sleep(node.cancelAfter)]);
              scope.cancel('random');
            }
            return part;
          },
          { cancellable: node.cancellable, ...(node.timeout !== undefined && { timeout: node.timeout }) },
        );
      case 'float':
        void calm(`${path}.float`, node.part);
        return 'floats';
    }
  };
  let handled = 0;
  messages.handlers?.forEach((handler, index) => {
    ctx.onUpdate(
      messages.updates![index],
      (value: unknown) => {
        note(`u${index}`, value);
        handled += 1;
        return run(`u${index}.${handled}`, handler);
      },
      {
        validate: (value: number) => {
          if (value % 4 === 3) throw new Error('refused');
        },
      },
    );
  });
  return run('p', root);
}
