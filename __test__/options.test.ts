/** Options are refused where they are not known, with the name that was meant, and are those that are declared. */
import { join } from 'node:path';
import ts from 'typescript';
import * as fusee from 'fusee';
import { check, crashEverywhere, replay, testEngine } from 'fusee/testing';
import { engineOf, quietLogger, rejection } from './support/engines';

const { object, open, signal, task, update, workflow } = fusee;
const go = signal<unknown>('go');
const ask = update('ask');
const once = workflow('once', async () => 1);
const works = task('works', async () => 1);
const counter = object('counter', { state: () => ({ n: 0 }), handlers: { add: async () => 1 } });
const bad = { nonsense: 1 } as any;

/** Names of the fields of a declared type. */
function declared(types: readonly string[]): ReadonlyMap<string, string[]> {
  const root = join(__dirname, '..');
  const name = join(root, 'options-of-types.ts');
  const text = [
    ...['index', 'testing'].map((entry) => `import type * as ${entry} from './${entry}.js';`),
    ...types.map((type, at) => `export type T${at} = ${type};`),
  ].join('\n');
  const options: ts.CompilerOptions = { strict: true, noEmit: true, target: ts.ScriptTarget.ES2022 };
  options.moduleResolution = ts.ModuleResolutionKind.Bundler;
  options.module = ts.ModuleKind.ESNext;
  const host = ts.createCompilerHost(options);
  const [read, has] = [host.getSourceFile.bind(host), host.fileExists.bind(host)];
  host.fileExists = (file) => file === name || has(file);
  host.getSourceFile = (file, ...rest) =>
    file === name ? ts.createSourceFile(file, text, ts.ScriptTarget.ES2022) : read(file, ...rest);
  const program = ts.createProgram([name], options, host);
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(name)!;
  const fields = (type: ts.Type): string[] =>
    type.isUnion() ? type.types.flatMap(fields) : type.getProperties().map((field) => field.name);
  const aliases = source.statements.filter(ts.isTypeAliasDeclaration);
  return new Map(aliases.map((alias, at) => [types[at]!, fields(checker.getTypeAtLocation(alias)).sort()]));
}

async function refusal(call: () => unknown): Promise<string> {
  const error = await rejection(new Promise((resolve) => resolve(call())));
  expect(error).toBeInstanceOf(TypeError);
  return error.message as string;
}

/** What `ctx` says to a workflow that gives it a bad option. */
async function refusalInside(engine: any, name: string): Promise<string> {
  return refusal(() =>
    engine.execute(inside, name).catch((error: { cause: unknown }) => {
      throw error.cause;
    }),
  );
}

const never = async (): Promise<number> => 1;
const inside = workflow('inside', async (ctx: any, name: string): Promise<unknown> => {
  const verbs: { [name: string]: () => unknown } = {
    step: () => ctx.step('s', never, bad),
    stepRetry: () => ctx.step('s', never, { retry: bad }),
    child: () => ctx.run(once, undefined, bad),
    start: () => ctx.start(once, undefined, bad),
    task: () => ctx.run(works, undefined, bad),
    enqueue: () => ctx.enqueue(works, undefined, bad),
    waitFor: () => ctx.waitFor(go, bad),
    condition: () => ctx.condition(() => true, bad),
    awakeable: () => ctx.awakeable(bad),
    token: () => ctx.awakeable().token,
    onUpdate: () => ctx.onUpdate(ask, () => undefined, bad),
    scope: () => ctx.scope(never, bad),
    handle: () => ctx.handle(once, 'x', bad),
    continueAsNew: () => ctx.continueAsNew(name, bad),
  };
  return verbs[name]!();
});

type Case = readonly [type: string, call: (engine: any) => unknown, also?: readonly string[]];
const of = (name: string) => async (engine: any) => {
  throw new TypeError(await refusalInside(engine, name));
};
const memory = (options: object): Promise<unknown> => open(':memory:', options as any);
const queue = (spec: object): Promise<unknown> => memory({ queues: { q: spec } });
const schedule = (spec: object): Promise<unknown> => memory({ tasks: [works], schedules: { s: spec } });
const workers = { module: './nowhere.mjs' };

const cases: { readonly [name: string]: Case } = {
  workflow: ['index.WorkflowOptions', () => workflow('x', never, bad)],
  task: ['index.TaskOptions', () => task('x', never, bad)],
  'task, retry': ['index.RetryOptions', () => task('x', never, { retry: bad })],
  'task, a limit': ['Exclude<index.LimitUse, string>', () => task('x', never, { limits: [{ name: 'l', ...bad }] })],
  object: ['Parameters<typeof index.object>[1]', () => object('x', bad)],
  open: ['index.OpenOptions & { dir: string }', () => memory(bad)],
  'open, workers': ['index.WorkerOptions', () => memory({ workers: { ...workers, ...bad } })],
  'open, resourceLimits': [
    "NonNullable<index.WorkerOptions['resourceLimits']>",
    () => memory({ workers: { ...workers, resourceLimits: bad } }),
  ],
  'open, a queue': ['index.QueueSpec', () => queue(bad)],
  'open, retry of a queue': ['index.RetryOptions', () => queue({ retry: bad })],
  'open, rateLimit': ["NonNullable<index.QueueSpec['rateLimit']>", () => queue({ rateLimit: bad })],
  'open, fair': ["NonNullable<index.QueueSpec['fair']>", () => queue({ fair: bad })],
  'open, bounds': [
    "Exclude<NonNullable<index.QueueSpec['concurrency']>, number>",
    () => queue({ concurrency: { min: 0, max: 1, ...bad } }),
  ],
  'open, scale': ['index.ScaleOptions', () => queue({ concurrency: { min: 0, max: 1, scale: bad } })],
  'open, slo': [
    "NonNullable<index.ScaleOptions['slo']>",
    () => queue({ concurrency: { min: 0, max: 1, scale: { slo: bad } } }),
  ],
  'open, a limit': ['index.LimitSpec', () => memory({ limits: { l: bad } })],
  'open, a schedule': ['index.ScheduleSpec<index.Task<void>>', () => schedule({ run: works, every: '1m', ...bad })],
  'open, options of a task of a schedule': [
    'index.ScheduledTaskOptions',
    () => schedule({ run: works, every: '1m', options: bad }),
  ],
  'schedules.upsert, options of a run': [
    'index.ScheduledRunOptions',
    (engine) => engine.schedules.upsert('s', { run: once, every: '1m', options: bad }),
  ],
  'schedules.preview': ['index.ScheduleTiming', (engine) => engine.schedules.preview(bad)],
  'schedules.backfill': [
    "Parameters<index.ScheduleControl['backfill']>[1]",
    (engine) => engine.schedules.backfill('s', bad),
  ],
  start: ['index.StartOptions', (engine) => engine.start(once, undefined, bad)],
  execute: ['index.ExecuteOptions', (engine) => engine.execute(once, undefined, bad)],
  signalWithStart: [
    'index.StartOptions',
    (engine) => engine.signalWithStart(once, { id: 'x', signal: go, ...bad }),
    ['dedupeId', 'input', 'signal', 'value'],
  ],
  updateWithStart: [
    'index.StartOptions',
    (engine) => engine.updateWithStart(once, { id: 'x', update: ask, ...bad }),
    ['input', 'update', 'updateId', 'value'],
  ],
  complete: [
    "NonNullable<Parameters<index.Engine['complete']>[2]>",
    async (engine) => engine.complete(await engine.execute(inside, 'token'), 1, bad),
  ],
  'object, a call': ['index.CallOptions', (engine) => engine.object(counter, 'c').add(undefined, bad)],
  'objects.set': ['index.EditOptions', (engine) => engine.objects.set(counter, 'c', { n: 1 }, bad)],
  'objects.delete': ['index.AuditOptions', (engine) => engine.objects.delete(counter, 'c', bad)],
  enqueue: ['index.EnqueueOptions', (engine) => engine.enqueue(works, undefined, bad)],
  'enqueue, retry': ['index.RetryOptions', (engine) => engine.enqueue(works, undefined, { retry: bad })],
  'enqueue, reserve': [
    "NonNullable<index.EnqueueOptions['reserve']>",
    (engine) => engine.enqueue(works, undefined, { reserve: bad }),
  ],
  'enqueue, dedupe': ['index.Dedupe', (engine) => engine.enqueue(works, undefined, { dedupe: bad })],
  'enqueue, a limit': [
    'Exclude<index.LimitCall, string>',
    (engine) => engine.enqueue(works, undefined, { limits: [{ name: 'l', ...bad }] }),
  ],
  'enqueue of a workflow': ['index.EnqueueWorkflowOptions', (engine) => engine.enqueue(once, undefined, bad)],
  limit: ['index.LimitSpec', (engine) => engine.limit('l', bad)],
  retry: ['index.TaskFilter', (engine) => engine.retry(bad)],
  tasks: ['index.TaskFilter', (engine) => engine.tasks(bad).next()],
  list: ['index.ListOptions', (engine) => engine.list(bad).next()],
  listPage: ['index.PageOptions', (engine) => engine.listPage(bad)],
  count: ['index.RunFilter', (engine) => engine.count(bad)],
  'count, and': ['index.RunFilter', (engine) => engine.count({ and: [bad] })],
  'count, an attribute': [
    'Extract<index.AttributeFilter, { gt?: unknown }>',
    (engine) => engine.count({ attributes: { a: bad } }),
  ],
  handle: ['{ runId?: string }', (engine) => engine.handle(once, 'x', bad)],
  handleSignals: ['{ grace?: string }', (engine) => engine.handleSignals(bad)],
  close: ['{ grace?: string }', (engine) => engine.close(bad)],
  'handle.result': ['index.ResultOptions', (engine) => engine.handle('x').result(bad)],
  'handle.signal': ['index.SignalOptions', (engine) => engine.handle('x').signal(go, 1, bad)],
  'handle.query': ['index.ResultOptions', (engine) => engine.handle('x').query(fusee.query('q'), 1, bad)],
  'handle.update': ['index.UpdateOptions', (engine) => engine.handle('x').update(ask, undefined, bad)],
  'handle.cancel': ['index.AuditOptions', (engine) => engine.handle('x').cancel('why', bad)],
  'handle.pause': ['index.AuditOptions', (engine) => engine.handle('x').pause(bad)],
  'handle.wake': ['index.AuditOptions', (engine) => engine.handle('x').wake(bad)],
  'handle.reset': ['index.ResetOptions', (engine) => engine.handle('x').reset({ toStep: 1, ...bad })],
  'handle.fork': ['index.ForkOptions', (engine) => engine.handle('x').fork({ toStep: 1, ...bad })],
  'handle.retry': ['index.RetryRunOptions', (engine) => engine.handle('x').retry(bad)],
  'handle.export': ['index.ExportOptions', (engine) => engine.handle('x').export(bad)],
  'handle.result of a task': ['index.ResultOptions', (engine) => engine.handle(works, 't-1').result(bad)],
  'ctx.step': ['index.StepOptions', of('step')],
  'ctx.step, retry': ['index.RetryOptions', of('stepRetry')],
  'ctx.run': ['index.ChildOptions', of('child')],
  'ctx.start': ['index.ChildOptions', of('start')],
  'ctx.run of a task': ['index.AwaitedTaskOptions', of('task')],
  'ctx.enqueue': ['index.EnqueueOptions', of('enqueue')],
  'ctx.waitFor': ['{ timeout?: 1; orElse?: 1 }', of('waitFor')],
  'ctx.condition': ['{ timeout?: 1 }', of('condition')],
  'ctx.awakeable': ['{ timeout?: 1 }', of('awakeable')],
  'ctx.onUpdate': ['{ validate?: 1 }', of('onUpdate')],
  'ctx.scope': ['{ timeout?: 1; cancellable?: 1 }', of('scope')],
  'ctx.handle': ['{ runId?: 1 }', of('handle')],
  'ctx.continueAsNew': ['{ version?: 1; timeout?: 1 }', of('continueAsNew')],
  compression: ['index.CompressionOptions', () => fusee.compression(bad)],
  aes256gcm: ['Parameters<typeof index.aes256gcm>[0]', () => fusee.aes256gcm(bad)],
  'aes256gcm, a key': ['index.EncryptionKey', () => fusee.aes256gcm({ keys: [bad] })],
  testEngine: ["Omit<testing.TestOptions, 'dir'>", () => testEngine(bad)],
  replay: ['testing.ReplayOptions', () => replay(once, new Uint8Array(), bad)],
  check: ['testing.CheckOptions', () => check(bad)],
  crashEverywhere: [
    'Parameters<typeof testing.crashEverywhere>[0]',
    () => crashEverywhere({ workflow: once, ...bad }, { expect: never as any }),
  ],
  'crashEverywhere, a signal': [
    'testing.ScriptedSignal',
    () => crashEverywhere({ workflow: once, signals: [{ signal: go, ...bad }] }, { expect: never as any }),
  ],
  'crashEverywhere, its check': [
    'Parameters<typeof testing.crashEverywhere>[1]',
    () => crashEverywhere({ workflow: once }, { expect: never as any, ...bad }),
  ],
};

const types = declared(Object.values(cases).map(([type]) => type));

test.each(Object.keys(cases))(
  '%s refuses an option that it does not know, and knows those that are declared',
  async (name) => {
    const [type, call, also = []] = cases[name]!;
    const engine = await engineOf([once, inside], { tasks: [works], objects: [counter] });
    const message = await refusal(() => call(engine));
    expect(message).toMatch(/has no option 'nonsense'; it has /);
    const known = message.split('; it has ')[1]!.split(', ');
    expect(known.sort()).toEqual([...new Set([...types.get(type)!, ...also])].sort());
  },
);

test('the nearest name is suggested', async () => {
  const engine = await engineOf([once], { tasks: [works] });
  for (const [given, meant, call] of [
    ['attempts', 'maxAttempts', (options: any) => task('x', never, { retry: options })],
    ['attempts', 'maxAttempts', (options: any) => engine.enqueue(works, undefined, { retry: options })],
    ['initialInterva', 'initialInterval', (options: any) => queue({ retry: options })],
    ['concurency', 'concurrency', (options: any) => engine.limit('l', options)],
    ['concurency', 'concurrency', (options: any) => queue(options)],
    ['wrokflows', 'workflows', (options: any) => memory(options)],
    ['actr', 'actor', (options: any) => engine.handle('x').cancel('', options)],
    ['time_out', 'timeout', (options: any) => engine.start(once, undefined, options)],
  ] as const) {
    const message = await refusal(() => call({ [given]: 3 }));
    expect(message).toContain(`has no option '${given}'; did you mean '${meant}'? it has `);
  }
  expect(await refusal(() => engine.start(once, undefined, { zzz: 1 }))).not.toContain('did you mean');
  expect(await refusal(() => engine.limit('l', {}))).toMatch(/limit 'l' needs concurrency, or limit and period/);
});

test('a logger of one`s own may have more than is asked of it', async () => {
  const { logger } = quietLogger();
  const engine = await testEngine({ logger: { ...logger, trace: () => undefined } as any });
  await engine.close();
});
