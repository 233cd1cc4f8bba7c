/**
 * Listeners of an engine, by name of the event.
 */
import { inRoot } from '../worker/contexts.js';

/** What listeners are told about. */
export const EVENT_NAMES = [
  'completed',
  'failed',
  'cancelled',
  'terminated',
  'timedOut',
  'continuedAsNew',
  'skipped',
  'missed',
  'expired',
  'shed',
  'stuck',
  'schedule',
  'scale',
  'warning',
  'workerLost',
  'workerReplaced',
  'workerBlocked',
] as const;

/** Name of an event. */
export type EventName = (typeof EVENT_NAMES)[number];

type Listener = (event: unknown) => void;

/** Listeners. */
export class Listeners {
  private readonly byName = new Map<EventName, { readonly listener: Listener; readonly isOnce: boolean }[]>();

  /** @param onFailure is told what a listener throws */
  constructor(private readonly onFailure: (name: EventName, error: unknown) => void) {}

  get isAny(): boolean {
    return this.byName.size > 0;
  }

  add(name: unknown, listener: unknown, isOnce: boolean): void {
    if (!EVENT_NAMES.includes(name as EventName)) {
      throw new TypeError(`there is no event '${String(name)}'; there are ${EVENT_NAMES.join(', ')}`);
    }
    if (typeof listener !== 'function') throw new TypeError('a listener must be a function');
    const list = this.byName.get(name as EventName) ?? [];
    this.byName.set(name as EventName, [...list, { listener: listener as Listener, isOnce }]);
  }

  remove(name: unknown, listener: unknown): void {
    const list = this.byName.get(name as EventName);
    const index = list?.findIndex((entry) => entry.listener === listener) ?? -1;
    if (index >= 0) this.keep(name as EventName, list!.toSpliced(index, 1));
  }

  /** @returns whether there was a listener */
  emit(name: EventName, event: object): boolean {
    const list = this.byName.get(name);
    if (list === undefined) return false;
    this.keep(
      name,
      list.filter((entry) => !entry.isOnce),
    );
    for (const { listener } of list) {
      try {
        inRoot(listener, event);
      } catch (error) {
        this.onFailure(name, error);
      }
    }
    return true;
  }

  private keep(name: EventName, list: { readonly listener: Listener; readonly isOnce: boolean }[]): void {
    if (list.length === 0) this.byName.delete(name);
    else this.byName.set(name, list);
  }
}
