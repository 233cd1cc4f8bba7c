/**
 * Requests that are under way: a token each, and the promise that the answer settles.
 *
 * It does not know what is asked for.
 */
import { ClosedError, fromNative, RunNotFoundError } from '../errors.js';

const ACK = 6;
const REPLY = 7;
const REFUSE = 8;
const RESULT = 9;

/** So many tokens a thread has. */
const TOKENS = 2 ** 24;

let capturedResolve: (value: unknown) => void;
let capturedReject: (error: unknown) => void;

function capture(resolve: (value: unknown) => void, reject: (error: unknown) => void): void {
  capturedResolve = resolve;
  capturedReject = reject;
}

/** Something that waits for an answer. */
export interface Waiting {
  readonly token: number;
  /** The run that it is about, if it waits for the end of one: such a request outlives a crash in memory. */
  readonly target: ResultTarget | null;
  /** Asks again, after a crash in memory; `undefined`: it cannot be. */
  again?: ((token: number) => void) | undefined;
  /** The answer. @param status of a run that ended */
  settle(text: string, status: number): void;
  reject(error: unknown): void;
}

/** A run whose end is waited for; its run id is empty as long as it is not known. */
export interface ResultTarget {
  readonly id: string;
  readonly runId: string;
  /** Of a run that this request started: what is said if it is not there, since a crash in memory has lost it. */
  lost?: Error | undefined;
  /** It is a task: its id is all that names it. */
  readonly isTask?: boolean;
}

/** Makes an answer of its text. @param status of a run that ended @param target that run */
export type Reader<T> = (text: string, status: number, target: ResultTarget) => T;

const NO_RUN: ResultTarget = { id: '', runId: '' };

/** A request whose answer settles a promise. */
export class Request<T> implements Waiting {
  readonly promise: Promise<T>;
  private readonly settleWith: (value: T) => void;
  private readonly rejectWith: (error: unknown) => void;
  again: ((token: number) => void) | undefined = undefined;

  constructor(
    readonly token: number,
    private readonly read: Reader<T>,
    readonly target: ResultTarget | null,
  ) {
    this.promise = new Promise<unknown>(capture) as Promise<T>;
    this.settleWith = capturedResolve;
    this.rejectWith = capturedReject;
  }

  settle(text: string, status: number): void {
    let value: T;
    try {
      value = this.read(text, status, this.target ?? NO_RUN);
    } catch (error) {
      this.rejectWith(error);
      return;
    }
    this.settleWith(value);
  }

  reject(error: unknown): void {
    const lost = this.target?.lost;
    this.rejectWith(lost !== undefined && RunNotFoundError.is(error) ? lost : error);
  }
}

/** All requests of one engine that are under way. */
export class Requests {
  private readonly open = new Map<number, Waiting>();
  private lastToken = 0;

  /** @param onChange is told whether any request is under way, when that changes */
  constructor(
    private readonly onChange: (isAny: boolean) => void,
    /** Tokens are this number and those after it: so the answer finds its thread. */
    private readonly firstToken = 0,
  ) {}

  get count(): number {
    return this.open.size;
  }

  /** A token that no open request has. */
  nextToken(): number {
    let token: number;
    do {
      this.lastToken = (this.lastToken + 1) % TOKENS;
      token = this.firstToken + this.lastToken;
    } while (this.lastToken === 0 || this.open.has(token));
    return token;
  }

  /** Answers to its token go to `request` from now on. */
  add(request: Waiting): void {
    this.open.set(request.token, request);
    if (this.open.size === 1) this.onChange(true);
  }

  /** A request that somebody else sends. @param read makes the answer of its text */
  prepare<T>(read: Reader<T>, target: ResultTarget | null = null): Request<T> {
    const request = new Request<T>(this.nextToken(), read, target);
    this.add(request);
    return request;
  }

  /** Makes a request. @param send asks the engine; what it throws rejects the request */
  make<T>(send: (token: number) => void, read: Reader<T>, target: ResultTarget | null = null): Request<T> {
    const request = this.prepare(read, target);
    try {
      send(request.token);
    } catch (error) {
      this.remove(request);
      request.reject(fromNative(error));
    }
    return request;
  }

  /** The answer is not waited for any more. */
  remove(request: Waiting): void {
    if (this.open.delete(request.token) && this.open.size === 0) this.onChange(false);
  }

  /** An answer came. @returns whether someone waited for it */
  handle(kind: number, token: number, status: number, text: string): boolean {
    const request = this.open.get(token);
    if (request === undefined) return false;
    this.remove(request);
    switch (kind) {
      case ACK:
      case REPLY:
      case RESULT:
        request.settle(text, status);
        break;
      case REFUSE: {
        const border = text.indexOf('\u001f');
        request.reject(fromNative({ code: text.slice(0, border), message: text.slice(border + 1) }));
        break;
      }
      default:
        request.reject(new Error(`an answer of an unknown kind, ${kind}`));
    }
    return true;
  }

  /** Rejects all. */
  rejectAll(error: unknown): void {
    for (const request of this.all()) {
      this.remove(request);
      request.reject(error);
    }
  }

  all(): Waiting[] {
    return [...this.open.values()];
  }
}

/** What a call on a closed engine gets. */
export function closed(): ClosedError {
  return new ClosedError('the engine is closed');
}
