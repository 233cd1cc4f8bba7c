/**
 * Ids that nobody has given.
 */
import { randomUUID } from 'node:crypto';

/** An id that no other run has. */
export function randomId(): string {
  return randomUUID();
}
