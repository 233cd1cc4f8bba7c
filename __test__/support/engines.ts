import { testEngine } from 'fusee/testing';

/** Lines that an engine wrote. */
export interface Lines {
  readonly level: string;
  readonly message: string;
  readonly fields: Record<string, unknown>;
}

const open: { close(): Promise<void> }[] = [];

/** A logger that keeps its lines. */
export function quietLogger(): { readonly lines: Lines[]; readonly logger: any } {
  const lines: Lines[] = [];
  const write =
    (level: string) =>
    (message: string, fields: object = {}) => {
      lines.push({ level, message, fields: fields as Record<string, unknown> });
    };
  return { lines, logger: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') } };
}

/** A test engine that is closed after the test, and the lines that it wrote. */
export async function engineOf(workflows: readonly any[], options: object = {}): Promise<any> {
  const { lines, logger } = quietLogger();
  const engine: any = await testEngine({ workflows, logger, ...options } as any);
  open.push(engine);
  return Object.assign(engine, { lines });
}

/** Closes it after the test. */
export function closing<T extends { close(): Promise<void> }>(engine: T): T {
  open.push(engine);
  return engine;
}

afterEach(async () => {
  for (const engine of open.splice(0)) await engine.close();
});

/** What a promise is rejected with. */
export async function rejection(promise: Promise<unknown>): Promise<any> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('it was not rejected');
}
