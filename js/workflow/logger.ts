/**
 * Lines about a run, silent while it replays.
 */
import type { LogLevel } from './host.js';
import type { Run } from './run.js';

/** Writes lines about a run. */
export interface RunLogger {
  debug(message: string, fields?: object): void;
  info(message: string, fields?: object): void;
  warn(message: string, fields?: object): void;
  error(message: string, fields?: object): void;
}

/** The lines of a run. */
export function loggerOf(run: Run): RunLogger {
  const write = (level: LogLevel) => (message: string, fields?: object) => {
    if (!run.isReplaying) run.host.log(run, level, message, fields);
  };
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}
