import { RetryableError, StepError } from 'fusee';
import { decode, decodeFailure, encode, encodeFailure, passThrough } from '../js/codec';
import { chanceOf } from './support/programs';

const roundTrip = (value: unknown): unknown => decode(encode(value));

test.each<[string, unknown]>([
  ['undefined', undefined],
  ['null', null],
  ['text with every kind of character', 'a\u0000\n\u001f\u2028"\\\ud800 ü 🦀'],
  ['numbers', [0, -0, 1.5, NaN, Infinity, -Infinity, 2 ** 53]],
  ['BigInt', 2n ** 100n],
  ['Date', new Date(5)],
  [
    'Map',
    new Map<unknown, unknown>([
      ['a', 1],
      [{ k: 1 }, new Map()],
    ]),
  ],
  ['Set', new Set([1, 'a', [2]])],
  ['RegExp', /a\/b/giu],
  ['URL', new URL('https://example.org/a?b=c#d')],
  ['typed arrays', [new Uint8Array([1, 2]), new Float64Array([1.5]), new BigInt64Array([5n]), new Uint16Array([7])]],
  ['Buffer', Buffer.from('abc')],
  ['undefined in fields and arrays', { a: undefined, b: [undefined, 1] }],
  ['a field named $', { $: ['u'], other: { $: 1 } }],
  ['empty containers', [[], {}, new Map(), new Set(), '']],
])('%s comes back as it was', (_name, value) => {
  const back = roundTrip(value);
  expect(back).toEqual(value);
  expect(Object.prototype.toString.call(back)).toBe(Object.prototype.toString.call(value));
  expect(encode(back)).toBe(encode(value));
  // eslint-disable-next-line no-control-regex -- what the test is about
  expect(encode(value)).not.toMatch(/[\u0000-\u001f]/);
});

test('-0, invalid dates and the order of fields are kept', () => {
  expect((roundTrip(new Date(NaN)) as Date).getTime()).toBeNaN();
  expect(Object.is(roundTrip(-0), -0)).toBe(true);
  expect(Object.keys(roundTrip({ z: 1, a: undefined, m: 2 }) as object)).toEqual(['z', 'a', 'm']);
});

test('errors keep their name, message, stack, cause and fields; ours keep their class', () => {
  const cause = Object.assign(new TypeError('deep'), { code: 'E_DEEP', at: new Date(1) });
  const error = new StepError('step failed', { step: 's', attempts: 2, history: [new Error('first')], cause });
  const back: any = roundTrip(error);
  expect(back).toBeInstanceOf(StepError);
  expect(StepError.is(back)).toBe(true);
  expect(back).toMatchObject({
    name: 'StepError',
    message: 'step failed',
    code: 'STEP_FAILED',
    step: 's',
    attempts: 2,
  });
  expect(back.stack).toContain('codec.test.ts');
  expect(back.history[0].message).toBe('first');
  expect(back.cause).toBeInstanceOf(TypeError);
  expect(back.cause).toMatchObject({ name: 'TypeError', message: 'deep', code: 'E_DEEP', at: new Date(1) });
  expect(Object.keys(back)).not.toContain('cause');
  const own: any = roundTrip(Object.assign(new Error('x'), { name: 'BadCard' }));
  expect([own.name, String(own)]).toEqual(['BadCard', 'BadCard: x']);
  const all: any = roundTrip(new AggregateError([new Error('one')], 'all'));
  expect(all.errors[0].message).toBe('one');
  expect((roundTrip(new RetryableError('later', { retryAfter: new Date(9) })) as any).retryAfter).toEqual(new Date(9));
});

test('values that contain themselves survive', () => {
  const loop: any = { name: 'loop', list: [], map: new Map(), set: new Set() };
  loop.self = loop;
  loop.list.push(loop.list, loop);
  loop.map.set('loop', loop);
  loop.set.add(loop.set);
  loop.error = new Error('in it');
  loop.error.cause = loop.error;
  const back: any = roundTrip(loop);
  expect(back.self).toBe(back);
  expect(back.list[0]).toBe(back.list);
  expect(back.list[1]).toBe(back);
  expect(back.map.get('loop')).toBe(back);
  expect(back.set.has(back.set)).toBe(true);
  expect(back.error.cause).toBe(back.error);
});

test('an object with toJSON is what that gives', () => {
  expect(roundTrip({ at: { toJSON: () => [new Date(3)] } })).toEqual({ at: [new Date(3)] });
  class Money {
    constructor(readonly cents: number) {}
    toJSON(): unknown {
      return { cents: this.cents };
    }
  }
  expect(roundTrip(new Money(5))).toEqual({ cents: 5 });
});

test('__proto__ is data and never the prototype', () => {
  const given = JSON.parse('{"__proto__": {"polluted": true}, "also": {"$": 1, "__proto__": 2}, "n": null}');
  given.n = undefined;
  const back: any = roundTrip(given);
  expect(Object.getPrototypeOf(back)).toBe(Object.prototype);
  expect(Object.keys(back)).toEqual(['__proto__', 'also', 'n']);
  expect(back.polluted).toBeUndefined();
  expect(({} as any).polluted).toBeUndefined();
});

class Service {}

test.each<[unknown, RegExp]>([
  [() => 1, /^the value is a function/],
  [{ a: { b: [0, function named() {}] } }, /^the value\.a\.b\[1\] is a function \(named\)/],
  [{ s: Symbol('x') }, /^the value\.s is a symbol/],
  [{ service: new Service() }, /^the value\.service is an instance of Service/],
  [{ 'a b': new WeakMap() }, /^the value\["a b"\] is an instance of WeakMap/],
  [new Map([['k', () => 1]]), /^the value\.get\('k'\) is a function/],
  [[Promise.resolve()], /^the value\[0\] is a promise/],
  [Object.assign(new Error('e'), { fn: () => 1 }), /^the value\.fn is a function/],
])('what cannot be written is refused with its path: %#', (value, said) => {
  expect(() => encode(value)).toThrow(TypeError);
  expect(() => encode(value)).toThrow(said);
});

test('a value that is nested too deeply is refused, not a crash', () => {
  let deep: unknown = 0;
  for (let level = 0; level < 100_000; level += 1) deep = [deep];
  expect(() => encode(deep)).toThrow(/nested deeper/);
});

test('whatever was thrown becomes a text', () => {
  const weird = Object.assign(new Error('weird'), { fn: () => 1, service: new Service(), ok: 1 });
  expect(decodeFailure(encodeFailure(weird))).toMatchObject({ message: 'weird', ok: 1, fn: '[a function (fn)]' });
  expect(decodeFailure(encodeFailure('text'))).toBe('text');
  expect(decodeFailure(encodeFailure(undefined))).toBeUndefined();
  expect(decodeFailure(encodeFailure(Symbol('s')))).toBe('[a symbol]');
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  expect(typeof decodeFailure(encodeFailure(proxy))).toBe('string');
  const throwing = Object.defineProperty(new Error('x'), 'message', {
    get: () => {
      throw new Error('no');
    },
  });
  expect(typeof decodeFailure(encodeFailure(throwing))).toBe('string');
  expect(decodeFailure(encodeFailure(new DOMException('gone', 'AbortError')))).toMatchObject({ name: 'AbortError' });
});

test('LAW-6: passThrough gives the value that a reader gets', () => {
  for (const value of [undefined, 'text', true, 5, null, { a: [1, undefined] }, new Date(4)]) {
    const { text, value: passed } = passThrough(value);
    expect(text).toBe(encode(value));
    expect(passed).toEqual(decode(text));
  }
});

test('random values come back as they were', () => {
  const chance = chanceOf(7);
  const below = (bound: number): number => Math.floor(chance() * bound);
  const make = (depth: number): unknown => {
    switch (below(depth > 0 ? 12 : 7)) {
      case 0:
        return below(1000) - 500;
      case 1:
        return String.fromCharCode(...Array.from({ length: below(6) }, () => below(0x10000)));
      case 2:
        return undefined;
      case 3:
        return [null, true, NaN, -0, 10n][below(5)];
      case 4:
        return new Date(below(1e9));
      case 5:
        return new Uint8Array([below(256)]);
      case 6:
        return '$';
      case 7:
        return new Map([[make(depth - 1), make(depth - 1)]]);
      case 8:
        return new Set([make(depth - 1)]);
      case 9:
        return Object.assign(new RangeError('r'), { value: make(depth - 1) });
      case 10:
        return Object.fromEntries(
          [
            ['a', make(depth - 1)],
            ['$', make(depth - 1)],
            ['__proto__', 1],
          ].slice(0, below(4)),
        );
      default:
        return Array.from({ length: below(4) }, () => make(depth - 1));
    }
  };
  for (let round = 0; round < 3000; round += 1) {
    const value = make(4);
    const text = encode(value);
    expect(decode(text)).toEqual(value);
    expect(encode(decode(text))).toBe(text);
  }
});
