import { duration } from 'fusee';
import { toMs, toTimeMs } from '../js/duration';

test.each<[unknown, number]>([
  [0, 0],
  [1500, 1500],
  [1.4, 1],
  ['250ms', 250],
  ['30s', 30_000],
  ['1h30m', 5_400_000],
  ['1.5h', 5_400_000],
  ['7d', 604_800_000],
  ['2w', 1_209_600_000],
  [{ hours: 1, minutes: 30 }, 5_400_000],
  [{ days: 1, milliseconds: 5 }, 86_400_005],
  [{ years: 0, months: 0, seconds: 1 }, 1000],
])('%p is a duration', (given, ms) => {
  expect(toMs(given)).toBe(ms);
});

test.each([
  -1,
  NaN,
  Infinity,
  '',
  'soon',
  '5',
  '5 m',
  '5 parsecs',
  '-5m',
  null,
  undefined,
  true,
  {},
  [],
  { hour: 1 },
  { months: 1 },
  { hours: '1' },
])('%p is no duration', (given) => {
  expect(() => toMs(given)).toThrow(RangeError);
});

test('duration reads what configuration says', () => {
  expect(duration('10s')).toBe(10_000);
});

test('a time is a Date, milliseconds, or a text with a zone', () => {
  const ms = Date.UTC(2025, 0, 2, 3, 4, 5);
  for (const given of [ms, new Date(ms), '2025-01-02T03:04:05Z', '2025-01-02T05:04:05+02:00'])
    expect(toTimeMs(given)).toBe(ms);
  for (const given of ['2025-01-02', '2025-01-02T03:04:05', 'tomorrow', NaN, new Date(NaN), null, {}]) {
    expect(() => toTimeMs(given)).toThrow(RangeError);
  }
});
