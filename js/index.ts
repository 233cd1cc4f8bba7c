/**
 * `fusee`: what users import.
 */
import { Engine } from './client/engine.js';
import { readOptions, type OpenOptions } from './client/options.js';

export * from './definitions.js';
export * from './errors.js';
export { duration } from './duration.js';
export type { Engine } from './client/engine.js';

/** Opens a directory, or `':memory:'`, and resumes what was under way. */
export function open(directory: string | OpenOptions, options?: OpenOptions): Promise<Engine> {
  return new Promise((resolve) => {
    const isByOptions = typeof directory === 'object' && directory !== null;
    const given = (isByOptions ? directory : options) ?? {};
    resolve(new Engine(readOptions(isByOptions ? undefined : directory, given, 'open')));
  });
}
