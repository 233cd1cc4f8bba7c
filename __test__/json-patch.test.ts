import { applyPatch } from '../js/json-patch';

const cases: [string, unknown, unknown, unknown][] = [
  ['adds a member', { a: 1 }, [{ op: 'add', path: '/b', value: 2 }], { a: 1, b: 2 }],
  ['adds before an element', [1, 3], [{ op: 'add', path: '/1', value: 2 }], [1, 2, 3]],
  ['adds behind the last one', [1], [{ op: 'add', path: '/-', value: 2 }], [1, 2]],
  ['adds at the length', [1], [{ op: 'add', path: '/1', value: 2 }], [1, 2]],
  ['removes a member', { a: 1, b: 2 }, [{ op: 'remove', path: '/a' }], { b: 2 }],
  ['removes an element', [1, 2, 3], [{ op: 'remove', path: '/1' }], [1, 3]],
  ['replaces a value', { a: { b: 1 } }, [{ op: 'replace', path: '/a/b', value: 2 }], { a: { b: 2 } }],
  ['replaces all', 1, [{ op: 'replace', path: '', value: [2] }], [2]],
  ['moves a value', { a: { b: 1 }, c: [] }, [{ op: 'move', from: '/a/b', path: '/c/0' }], { a: {}, c: [1] }],
  ['moves nothing', { a: 1 }, [{ op: 'move', from: '/a', path: '/a' }], { a: 1 }],
  ['copies a value', { a: [1] }, [{ op: 'copy', from: '/a', path: '/b' }, { op: 'add', path: '/b/-', value: 2 }], { a: [1], b: [1, 2] }], // prettier-ignore
  ['tests by value', { a: { x: 1, y: [2] } }, [{ op: 'test', path: '/a', value: { x: 1, y: [2] } }], { a: { x: 1, y: [2] } }], // prettier-ignore
  [
    'reads ~1 and ~0',
    { 'a/b': 1, 'm~n': 2 },
    [
      { op: 'remove', path: '/a~1b' },
      { op: 'remove', path: '/m~0n' },
    ],
    {},
  ],
  ['has empty names', { '': 1 }, [{ op: 'replace', path: '/', value: 2 }], { '': 2 }],
  ['keeps dates', { at: new Date(5) }, [{ op: 'add', path: '/n', value: 1 }], { at: new Date(5), n: 1 }],
];

test.each(cases)('%s', (_, value, patch, expected) => {
  expect(applyPatch(value, patch)).toEqual(expected);
});

test('__proto__ is a name like others', () => {
  const patched: any = applyPatch({}, [{ op: 'add', path: '/__proto__', value: { polluted: true } }]);
  expect(Object.keys(patched)).toEqual(['__proto__']);
  expect(({} as any).polluted).toBeUndefined();
  expect(() => applyPatch({}, [{ op: 'remove', path: '/constructor' }])).toThrow(/no 'constructor'/);
});

test.each([
  [{}, /is an array of operations, not an object/],
  [[5], /operation 0 of the patch is no object/],
  [[{ op: 'put', path: '' }], /'put' as its op/],
  [[{ op: 'add', path: 'a', value: 1 }], /has no path/],
  [[{ op: 'add', path: '/a~2', value: 1 }], /has no path/],
  [[{ op: 'add', path: '/a' }], /is add without a value/],
  [[{ op: 'move', path: '/a' }], /is a move without a path as its from/],
  [[{ op: 'move', from: '/a', path: '/a/b' }], /moves a value into itself/],
  [[{ op: 'replace', path: '/x', value: 1 }], /operation 0 of the patch, replace \/x: there is no 'x'/],
  [[{ op: 'test', path: '/list', value: [1] }], /another one/],
  [[{ op: 'add', path: '/list/3', value: 1 }], /'3' is no place in an array of 2/],
  [[{ op: 'remove', path: '/list/-' }], /'-' is no place/],
  [[{ op: 'remove', path: '/list/01' }], /'01' is no place/],
  [[{ op: 'add', path: '/at/x', value: 1 }], /'x' would be in an object, which has no such places/],
  [[{ op: 'add', path: '/n/x', value: 1 }], /'x' would be in 5/],
] as [unknown, RegExp][])('%j is refused', (patch, said) => {
  expect(() => applyPatch({ list: [1, 2], at: new Date(0), n: 5 }, patch)).toThrow(said);
});
