/**
 * Lists of runs, page by page.
 */
import { knownOptions, shown } from '../options.js';
import type { EngineCore } from './core.js';
import { FILTER_OPTIONS, packFilter, type RunFilter } from './filters.js';
import { readRow, type RunRow } from './rows.js';

/** Which runs, in which order, how many. */
export interface ListOptions extends RunFilter {
  readonly order?: unknown;
  readonly limit?: unknown;
}

/** One page of a list. */
export interface PageOptions extends ListOptions {
  readonly cursor?: unknown;
}

/** Some runs, and where the list goes on. */
export interface RunPage {
  readonly runs: RunRow[];
  readonly cursor: string | undefined;
}

const LIST_OPTIONS = [...FILTER_OPTIONS, 'order', 'limit'];
/** Rows of a page, if nobody says. */
const PAGE = 100;
const PAGE_MAX = 10_000;

/** Runs, as durable now, read in pages. */
export async function* listRuns(core: EngineCore, options: ListOptions | undefined): AsyncIterableIterator<RunRow> {
  knownOptions(options, LIST_OPTIONS, 'engine.list');
  const query = packFilter(options, 'engine.list');
  const newestFirst = readOrder(options?.order);
  let left = readLimit(options?.limit);
  let cursor: string | undefined = '';
  while (cursor !== undefined && left > 0) {
    const page: RunPage = await request(core, query, newestFirst, cursor, Math.min(PAGE, left));
    yield* page.runs;
    cursor = page.cursor;
    left -= page.runs.length;
  }
}

/** One page. */
export async function pageOfRuns(core: EngineCore, options: PageOptions | undefined): Promise<RunPage> {
  knownOptions(options, [...LIST_OPTIONS, 'cursor'], 'engine.listPage');
  const { order, limit = PAGE, cursor = '' } = options ?? {};
  if (typeof limit !== 'number' || !Number.isInteger(limit) || limit < 1 || limit > PAGE_MAX) {
    throw new RangeError(`the limit of a page must be a whole number from 1 to ${PAGE_MAX}, not ${shown(limit)}`);
  }
  if (typeof cursor !== 'string') throw new TypeError(`a cursor must be a text, not ${shown(cursor)}`);
  return request(core, packFilter(options, 'engine.listPage'), readOrder(order), cursor, limit);
}

/** Number of runs. */
export async function countRuns(core: EngineCore, filter: RunFilter | undefined): Promise<number> {
  knownOptions(filter, FILTER_OPTIONS, 'engine.count');
  const query = packFilter(filter, 'engine.count');
  return core.request((token) => core.native.count(token, query), Number).promise;
}

function request(
  core: EngineCore,
  query: string,
  newestFirst: number,
  cursor: string,
  limit: number,
): Promise<RunPage> {
  return core.request((token) => core.native.list(token, query, newestFirst, cursor, limit), readPage).promise;
}

function readPage(text: string): RunPage {
  const rows = text.split('\u001e');
  const cursor = rows.pop();
  return { runs: rows.map(readRow), cursor: cursor === '' ? undefined : cursor };
}

function readOrder(order: unknown): number {
  if (order !== undefined && order !== 'newestFirst' && order !== 'oldestFirst') {
    throw new RangeError("order must be 'newestFirst' or 'oldestFirst'");
  }
  return order === 'oldestFirst' ? 0 : 1;
}

function readLimit(limit: unknown): number {
  if (limit === undefined) return Infinity;
  if (typeof limit !== 'number' || !(limit >= 0)) throw new RangeError('limit must be a number from 0');
  return limit;
}
