/**
 * Filters of runs, as callers give them, and as the texts in which they cross to the engine: each condition before its
 * parts.
 */
import { checkName, packOne } from '../attributes.js';
import { isWorkflow } from '../definitions.js';
import { toTimeMs } from '../duration.js';
import { knownOptions, shown } from '../options.js';
import { statusCode, STATUS_NAMES } from './rows.js';

/** Which runs: all conditions must hold. */
export interface RunFilter {
  readonly type?: unknown;
  readonly status?: unknown;
  readonly paused?: unknown;
  readonly stuck?: unknown;
  readonly idPrefix?: unknown;
  readonly startedAfter?: unknown;
  readonly startedBefore?: unknown;
  readonly attributes?: unknown;
  readonly and?: unknown;
  readonly or?: unknown;
  readonly not?: unknown;
}

export const FILTER_OPTIONS = [
  'type',
  'status',
  'paused',
  'stuck',
  'idPrefix',
  'startedAfter',
  'startedBefore',
  'attributes',
  'and',
  'or',
  'not',
];

const FIELD = '\u001f';
/** Conditions in one filter. */
const CONDITIONS_MAX = 1000;
const BOUNDS = { gt: '>', gte: '>=', lt: '<', lte: '<=' } as const;
const TESTS = [...Object.keys(BOUNDS), 'prefix', 'exists'];
// eslint-disable-next-line no-control-regex -- control characters are what it looks for
const CONTROL = /[\u0000-\u001f]/;

/** A filter as a text; empty: all runs. @throws TypeError, RangeError */
export function packFilter(filter: RunFilter | undefined, verb: string): string {
  const conditions = conditionsOf(filter ?? {}, verb);
  if (conditions.length === 0) return '';
  const text = joined('&', conditions);
  if (text.split(FIELD).length > CONDITIONS_MAX * 4) {
    throw new RangeError(`the filter of ${verb} has more than ${CONDITIONS_MAX} conditions`);
  }
  return text;
}

function joined(operator: '&' | '|', conditions: readonly string[]): string {
  return conditions.length === 1 ? conditions[0]! : [operator, conditions.length, ...conditions].join(FIELD);
}

function conditionsOf(filter: RunFilter, verb: string): string[] {
  const { type, status, paused, stuck, idPrefix, startedAfter, startedBefore, attributes, and, or, not } = filter;
  const found: string[] = [];
  const add = (...fields: (string | number)[]): number => found.push(fields.join(FIELD));
  if (type !== undefined) {
    found.push(
      joined(
        '|',
        listOf(type).map((name) => `k${FIELD}${typeName(name)}`),
      ),
    );
  }
  if (status !== undefined) add('s', statusMask(listOf(status)));
  if (paused !== undefined) add('P', flag(paused, 'paused'));
  if (stuck !== undefined) add('S', flag(stuck, 'stuck'));
  if (idPrefix !== undefined) add('i', plain(idPrefix, 'idPrefix'));
  if (startedAfter !== undefined) add('f', toTimeMs(startedAfter));
  if (startedBefore !== undefined) add('b', toTimeMs(startedBefore));
  found.push(...attributeConditions(attributes));
  if (and !== undefined) found.push(...filtersOf(and, 'and', verb));
  if (or !== undefined) found.push(joined('|', filtersOf(or, 'or', verb)));
  if (not !== undefined) found.push(`!${FIELD}${nested(not, 'not', verb)}`);
  return found;
}

function filtersOf(filters: unknown, name: string, verb: string): string[] {
  if (!Array.isArray(filters)) {
    throw new TypeError(`'${name}' in the filter of ${verb} must be an array of filters, not ${shown(filters)}`);
  }
  return filters.map((filter) => nested(filter, name, verb));
}

function nested(filter: unknown, name: string, verb: string): string {
  if (filter === undefined) throw new TypeError(`'${name}' in the filter of ${verb} needs a filter`);
  knownOptions(filter, FILTER_OPTIONS, `a filter in '${name}' of ${verb}`);
  return joined('&', conditionsOf(filter as RunFilter, verb));
}

function attributeConditions(attributes: unknown): string[] {
  if (attributes === undefined) return [];
  if (typeof attributes !== 'object' || attributes === null || Array.isArray(attributes)) {
    throw new TypeError(`attributes of a filter must be an object of names and values, not ${shown(attributes)}`);
  }
  const given = Object.entries(attributes).filter(([, test]) => test !== undefined);
  return given.flatMap(([name, test]) => testsOf(checkName(name, 'attributes of a filter'), test));
}

/** What is asked of one attribute: a value, or bounds of it. */
function testsOf(name: string, test: unknown): string[] {
  const what = `the attribute '${name}' of a filter`;
  if (typeof test !== 'object' || test === null || Object.prototype.toString.call(test) === '[object Date]') {
    return [['a', name, '=', packOne(test, what)].join(FIELD)];
  }
  knownOptions(test, TESTS, what);
  const given = Object.entries(test).filter(([, value]) => value !== undefined);
  if (given.length === 0) throw new TypeError(`${what} needs a value, or some of ${TESTS.join(', ')}`);
  return given.map(([key, value]) => {
    if (key === 'prefix') return ['a', name, '^', plain(value, `the prefix of ${what}`)].join(FIELD);
    if (key !== 'exists') return ['a', name, BOUNDS[key as keyof typeof BOUNDS], packOne(value, what)].join(FIELD);
    const exists = ['a', name, '?'].join(FIELD);
    return flag(value, `exists of ${what}`) === 1 ? exists : `!${FIELD}${exists}`;
  });
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value];
}

function typeName(type: unknown): string {
  return isWorkflow(type) ? type.name : plain(type, 'a type in a filter');
}

function statusMask(statuses: readonly unknown[]): number {
  let mask = 0;
  for (const name of statuses) {
    const code = statusCode(name);
    if (code === undefined)
      throw new RangeError(`there is no status '${String(name)}'; there are ${STATUS_NAMES.join(', ')}`);
    mask |= 1 << code;
  }
  return mask;
}

function flag(value: unknown, what: string): 0 | 1 {
  if (typeof value !== 'boolean') throw new TypeError(`${what} must be true or false, not ${shown(value)}`);
  return value ? 1 : 0;
}

function plain(text: unknown, what: string): string {
  if (typeof text !== 'string') throw new TypeError(`${what} must be a text, not ${shown(text)}`);
  if (CONTROL.test(text)) throw new TypeError(`${what} must have no control characters`);
  return text;
}
