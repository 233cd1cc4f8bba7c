/**
 * JSON Patch (RFC 6902) on values that were decoded for it: it changes them in place.
 *
 * Only plain objects and arrays have places; whatever else a state holds is replaced as a whole.
 */
import { encode } from './codec.js';
import { isPlain, setField } from './codec/kinds.js';
import { shown } from './options.js';

/** One operation. */
interface Operation {
  readonly op: string;
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

type Container = unknown[] | { [name: string]: unknown };

/** What the patch makes of a value. @throws TypeError that names the operation; the value may have been changed then */
export function applyPatch(value: unknown, patch: unknown): unknown {
  checkPatch(patch);
  let root = value;
  patch.forEach((operation, index) => {
    try {
      root = apply(root, operation);
    } catch (error) {
      const where = `operation ${index} of the patch, ${operation.op} ${operation.path}`;
      throw new TypeError(`${where}: ${(error as Error).message}`, { cause: error });
    }
  });
  return root;
}

/** @throws TypeError that names the operation */
export function checkPatch(patch: unknown): asserts patch is readonly Operation[] {
  if (!Array.isArray(patch)) throw new TypeError(`a JSON Patch is an array of operations, not ${shown(patch)}`);
  patch.forEach((operation: Partial<Operation> | null, index) => {
    const wrong = wrongIn(operation);
    if (wrong !== undefined) throw new TypeError(`operation ${index} of the patch ${wrong}`);
  });
}

function wrongIn(operation: Partial<Operation> | null): string | undefined {
  if (typeof operation !== 'object' || operation === null) return 'is no object';
  const { op, path, from } = operation;
  if (!['add', 'remove', 'replace', 'move', 'copy', 'test'].includes(op as string)) {
    return `has ${shown(op)} as its op; there are add, remove, replace, move, copy and test`;
  }
  if (typeof path !== 'string' || !isPointer(path)) return "has no path: '', or '/' before each name";
  const needsFrom = op === 'move' || op === 'copy';
  if (needsFrom && (typeof from !== 'string' || !isPointer(from))) return `is a ${op} without a path as its from`;
  if (op === 'move' && path.startsWith(`${from}/`)) return 'moves a value into itself';
  const needsValue = op === 'add' || op === 'replace' || op === 'test';
  return needsValue && !('value' in operation) ? `is ${op} without a value` : undefined;
}

function isPointer(text: string): boolean {
  return (text === '' || text.startsWith('/')) && !/~(?![01])/.test(text);
}

function apply(root: unknown, { op, path, from, value }: Operation): unknown {
  switch (op) {
    case 'add':
      return add(root, path, value);
    case 'replace':
      // It must be there.
      get(root, path);
      return path === '' ? value : put(root, path, value);
    case 'remove':
      return remove(root, path);
    case 'move': {
      const moved = get(root, from!);
      return from === path ? root : add(remove(root, from!), path, moved);
    }
    case 'copy':
      return add(root, path, structuredClone(get(root, from!)));
    default:
      if (encode(get(root, path)) !== encode(value)) throw new TypeError('the value there is another one');
      return root;
  }
}

function partsOf(path: string): string[] {
  return path
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function get(root: unknown, path: string): unknown {
  return partsOf(path).reduce<unknown>((at, part) => child(at, part), root);
}

function child(of: unknown, part: string): unknown {
  const container = asContainer(of, part);
  if (Array.isArray(container)) return container[indexIn(container, part, container.length - 1)];
  if (!Object.prototype.hasOwnProperty.call(container, part)) throw new TypeError(`there is no '${part}'`);
  return container[part];
}

/** The container that has the last part of a path, and that part. */
function placeOf(root: unknown, path: string): [Container, string] {
  const parts = partsOf(path);
  const last = parts.pop()!;
  return [
    asContainer(
      parts.reduce<unknown>((at, part) => child(at, part), root),
      last,
    ),
    last,
  ];
}

function add(root: unknown, path: string, value: unknown): unknown {
  if (path === '') return value;
  const [container, name] = placeOf(root, path);
  if (!Array.isArray(container)) setField(container, name, value);
  else container.splice(name === '-' ? container.length : indexIn(container, name, container.length), 0, value);
  return root;
}

function put(root: unknown, path: string, value: unknown): unknown {
  const [container, name] = placeOf(root, path);
  if (Array.isArray(container)) container[Number(name)] = value;
  else setField(container, name, value);
  return root;
}

function remove(root: unknown, path: string): unknown {
  if (path === '') return undefined;
  get(root, path);
  const [container, name] = placeOf(root, path);
  if (Array.isArray(container)) container.splice(Number(name), 1);
  else delete container[name];
  return root;
}

function asContainer(value: unknown, part: string): Container {
  if (Array.isArray(value)) return value as unknown[];
  if (typeof value === 'object' && value !== null && isPlain(value)) return value as { [name: string]: unknown };
  throw new TypeError(`'${part}' would be in ${shown(value)}, which has no such places`);
}

function indexIn(list: readonly unknown[], part: string, max: number): number {
  const index = /^(0|[1-9]\d*)$/.test(part) ? Number(part) : NaN;
  if (!(index <= max)) throw new TypeError(`'${part}' is no place in an array of ${list.length}`);
  return index;
}
