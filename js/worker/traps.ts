/**
 * Traps, in development, for what a workflow must not use: clocks, chance, timers, requests.
 *
 * The globals' functions are wrapped. A wrapped one does what it did; when the code of a workflow calls it within its
 * turn, a line names the place, once a place. The last engine that closes takes the wraps away.
 */
import { placeOf } from '../workflow/place.js';
import { Run } from '../workflow/run.js';
import { currentMark } from './contexts.js';
import type { Logger } from './host.js';

/** What is trapped, and what to use in its place. */
const TRAPPED: readonly (readonly [path: string, instead: string])[] = [
  ['Date.now', 'ctx.now()'],
  ['Math.random', 'ctx.random()'],
  ['crypto.randomUUID', 'ctx.uuid()'],
  ['setTimeout', 'ctx.sleep()'],
  ['setInterval', 'ctx.sleep()'],
  ['setImmediate', 'ctx.sleep()'],
  ['fetch', 'ctx.step()'],
];

type Callable = (this: unknown, ...args: unknown[]) => unknown;

interface Trap {
  readonly holder: Record<string, unknown>;
  readonly name: string;
  readonly original: unknown;
  readonly wrapped: unknown;
}

const loggers: Logger[] = [];
const warned = new Set<string>();
let traps: Trap[] = [];

/** Sets the traps until the function that it returns is called. */
export function setTraps(logger: Logger): () => void {
  loggers.push(logger);
  if (loggers.length === 1) traps = TRAPPED.flatMap(([path, instead]) => setTrap(path, instead));
  return () => {
    loggers.splice(loggers.indexOf(logger), 1);
    if (loggers.length > 0) return;
    for (const { holder, name, original, wrapped } of traps) {
      // Whoever replaced ours meanwhile, fake timers for one, keeps what they set.
      if (holder[name] === wrapped) holder[name] = original;
    }
    traps = [];
    warned.clear();
  };
}

function setTrap(path: string, instead: string): Trap[] {
  const names = path.split('.');
  const name = names.pop()!;
  const global = globalThis as unknown as Record<string, unknown>;
  const holder = (names.length === 0 ? global : global[names[0]!]) as Record<string, unknown> | undefined;
  const original = holder?.[name];
  if (holder === undefined || typeof original !== 'function' || !isWritable(holder, name)) return [];
  const wrapped = new Proxy(original as Callable, {
    apply(target: Callable, receiver, args: unknown[]) {
      look(path, instead);
      return Reflect.apply(target, receiver, args);
    },
  });
  holder[name] = wrapped;
  return [{ holder, name, original, wrapped }];
}

function isWritable(holder: object, name: string): boolean {
  for (let at: object | null = holder; at !== null; at = Object.getPrototypeOf(at) as object | null) {
    const descriptor = Object.getOwnPropertyDescriptor(at, name);
    if (descriptor !== undefined) return descriptor.writable === true || descriptor.set !== undefined;
  }
  return false;
}

/** Says where, if the caller is the code of a workflow in its turn. */
function look(path: string, instead: string): void {
  const mark = currentMark();
  if (!(mark instanceof Run) || mark.host.current !== mark) return;
  const place = placeOf(new Error(path)) ?? 'an unknown place';
  const key = `${path} ${place}`;
  if (warned.has(key)) return;
  warned.add(key);
  loggers[loggers.length - 1]?.warn(
    `fusee: workflow '${mark.code.name}' calls ${path} at ${place}; a replay gets another result. Use ${instead}`,
    { workflow: mark.code.name, id: mark.id },
  );
}
