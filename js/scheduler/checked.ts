/**
 * Inputs of tasks, checked and converted by their schemas.
 */
import type { Schema } from '../definitions.js';

interface SchemaResult {
  readonly value?: unknown;
  readonly issues?: readonly { readonly message: string }[];
}

/** The input as the task gets it. A promise, where its schema answers with one. @throws TypeError */
export function checkSchema(schema: Schema | undefined, value: unknown, what: string): unknown {
  if (schema === undefined) return value;
  const result = schema['~standard'].validate(value);
  return isThenable(result)
    ? Promise.resolve(result).then((answer) => parsed(answer as SchemaResult, what))
    : parsed(result as SchemaResult, what);
}

function parsed(result: SchemaResult, what: string): unknown {
  if (result.issues === undefined) return result.value;
  throw new TypeError(`${what} is refused by its schema: ${result.issues.map(({ message }) => message).join('; ')}`);
}

/** Whether a value is to be waited for. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}
