/**
 * Requests that are under way: a token each, and the promise that the answer settles.
 *
 * It does not know what is asked for.
 */
import { ClosedError, fromNative } from '../errors.js';

const ACK = 6;
const REPLY = 7;
const REFUSE = 8;
const RESULT = 9;

/** Which run a request for a result is about; filled in when the run is known. */
export interface ResultTarget {
  readonly id: string;
  runId: string;
}

/** A request that is under way. */
export class Request<T> {
  readonly promise: Promise<T>;
  private settleWith!: (value: T | PromiseLike<T>) => void;
  private rejectWith!: (error: unknown) => void;

  constructor(
    readonly token: number,
    private readonly read: (text: string, status: number) => T,
    /** Set when it asks for the end of a run: such a request outlives a crash of an engine in memory. */
    readonly target: ResultTarget | null,
  ) {
    this.promise = new Promise<T>((resolve, reject) => {
      this.settleWith = resolve;
      this.rejectWith = reject;
    });
  }

  /** @param status of a run that ended */
  settle(text: string, status: number): void {
    let value: T;
    try {
      value = this.read(text, status);
    } catch (error) {
      this.rejectWith(error);
      return;
    }
    this.settleWith(value);
  }

  reject(error: unknown): void {
    this.rejectWith(error);
  }
}

/** All requests of one engine that are under way. */
export class Requests {
  private readonly open = new Map<number, Request<any>>();
  private lastToken = 0;

  /** @param onChange is told whether any request is under way, when that changes */
  constructor(private readonly onChange: (isAny: boolean) => void) {}

  get count(): number {
    return this.open.size;
  }

  /**
   * Makes a request. @param send asks the engine; what it throws rejects the request
   * @param read makes the answer of its text
   */
  make<T>(send: (token: number) => void, read: (text: string, status: number) => T, target: ResultTarget | null = null): Request<T> {
    const request = this.prepare(read, target);
    try {
      send(request.token);
    } catch (error) {
      this.remove(request);
      request.reject(fromNative(error));
    }
    return request;
  }

  /** A request that somebody else sends. */
  prepare<T>(read: (text: string, status: number) => T, target: ResultTarget | null = null): Request<T> {
    do this.lastToken = (this.lastToken + 1) >>> 0;
    while (this.lastToken === 0 || this.open.has(this.lastToken));
    const request = new Request<T>(this.lastToken, read, target);
    this.open.set(request.token, request);
    if (this.open.size === 1) this.onChange(true);
    return request;
  }

  /** The answer is not waited for any more. */
  remove(request: Request<any>): void {
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

  all(): Request<any>[] {
    return [...this.open.values()];
  }
}

/** What a call on a closed engine gets. */
export function closed(): ClosedError {
  return new ClosedError('the engine is closed');
}
