/**
 * What kind of value something is, also if it comes from another realm: no `instanceof`.
 */

/** The name between the brackets of `[object …]`. */
export function tagOf(value: object): string {
  return Object.prototype.toString.call(value).slice(8, -1);
}

/** An object that is nothing but its fields: of `{}` in any realm, or without a prototype. */
export function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value) as object | null;
  if (prototype === null || prototype === Object.prototype) return true;
  return Object.getPrototypeOf(prototype) === null && Object.prototype.hasOwnProperty.call(prototype, 'isPrototypeOf');
}

/** Whether a value is an error, whoever made it. */
export function isError(value: object): value is Error {
  const tag = tagOf(value);
  return tag === 'Error' || tag === 'DOMException';
}

/** Sets a field, `__proto__` included: it is data, never the prototype. */
export function setField(target: object, name: string, value: unknown): void {
  if (name === '__proto__') {
    Object.defineProperty(target, name, { value, writable: true, enumerable: true, configurable: true });
  } else {
    (target as { [name: string]: unknown })[name] = value;
  }
}
