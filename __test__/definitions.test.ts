import { CancelledError, FuseeError, signal, StepError, TimeoutError, workflow } from 'fusee';
import { engineOf, rejection } from './support/engines';

/** A schema that wants a text and gives its length. */
const lengthOf = (isAsync: boolean): any => ({
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value: unknown) => {
      const result =
        typeof value === 'string'
          ? { value: value.length }
          : { issues: [{ message: 'no text', path: ['a', { key: 'b' }] }] };
      return isAsync ? Promise.resolve(result) : result;
    },
  },
});

test.each([true, false])(
  'schemas check and convert inputs and signals before anything is recorded (async: %p)',
  async (isAsync) => {
    const word = signal('word', lengthOf(isAsync));
    const takes = workflow('takes', async (ctx: any, input: any) => [input, await ctx.waitFor(word)], {
      input: lengthOf(isAsync),
    } as any);
    const engine = await engineOf([takes]);
    const error = await rejection(engine.start(takes, 5));
    expect(error.name).toBe('TypeError');
    expect(error.message).toBe("the input of workflow 'takes' is refused by its schema: a.b: no text");
    const handle = await engine.start(takes, 'four');
    expect((await rejection(handle.signal(word, 5))).message).toMatch(/value of signal 'word'/);
    await handle.signal(word, 'three');
    await expect(handle.result()).resolves.toEqual([4, 5]);
  },
);

test('definitions that cannot be meant are refused where they are made', () => {
  const call = workflow as any;
  expect(() => call('', () => 1)).toThrow(TypeError);
  expect(() => call('a\u0000b', () => 1)).toThrow(/control characters/);
  expect(() => call('x'.repeat(300), () => 1)).toThrow(/longer than 256/);
  expect(() => call('w')).toThrow(/needs a function/);
  expect(() => call('w', () => 1, { timeout: 'soon' })).toThrow(RangeError);
  expect(() => call('w', () => 1, { version: -1 })).toThrow(RangeError);
  expect(() => call('w', () => 1, { inputs: 1 })).toThrow(/no option 'inputs'/);
  expect(() => call('w', () => 1, { input: {} })).toThrow(/Standard Schema/);
  expect(() => (signal as any)(5)).toThrow(TypeError);
});

test('errors have a stable code and name, and is() knows those of another installed copy', () => {
  const error = new StepError('m', { step: 's', attempts: 1, cause: 'a text' });
  expect(error).toMatchObject({ name: 'StepError', code: 'STEP_FAILED', cause: 'a text' });
  expect(Object.keys(error)).not.toContain('name');
  let copy: any;
  jest.isolateModules(() => {
    copy = jest.requireActual('../js/errors');
  });
  expect(copy.StepError).not.toBe(StepError);
  expect(copy.StepError.is(error)).toBe(true);
  expect(copy.FuseeError.is(error)).toBe(true);
  expect(copy.TimeoutError.is(error)).toBe(false);
  expect(CancelledError.is(new copy.CancelledError('c', {}))).toBe(true);
  expect(FuseeError.is(new Error('other'))).toBe(false);
  for (const value of [null, undefined, 'StepError', 5, {}]) expect(TimeoutError.is(value)).toBe(false);
  class Mine extends StepError {}
  expect(StepError.is(new Mine('m', { step: 's', attempts: 1 }))).toBe(true);
});
