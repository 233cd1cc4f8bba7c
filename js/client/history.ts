/**
 * The records of a run as its history shows them.
 *
 * A payload says by its record where it belongs; what it was written for is sometimes told by a record before. A history is
 * for people: what cannot be read is shown as why, or as the text that it is.
 */
import { decode, decodeFailure } from '../codec.js';
import { isSealed, type PayloadPlace, type Payloads } from '../codec/payloads.js';
import { TASK_RESULT } from '../scheduler/rows.js';

/** One record of a run. */
export interface HistoryRecord {
  readonly lsn: string;
  readonly time: Date | undefined;
  readonly kind: string;
  readonly seq: number | undefined;
  readonly name: string | undefined;
  readonly attempt: number | undefined;
  readonly value: unknown;
}

/** Reads the rows of one history, in order. */
export class HistoryReader {
  /** What the end of an operation is, by its number. */
  private readonly ends = new Map<number, readonly PayloadPlace[]>();

  constructor(
    private readonly id: string,
    private readonly payloads: Payloads,
  ) {}

  /** @param rows that follow those of the call before */
  readAll(rows: readonly string[]): HistoryRecord[] {
    return rows.map((row) => this.read(row.split('\u001f')));
  }

  private read(field: readonly string[]): HistoryRecord {
    const [kind, name, seq] = [field[2]!, field[4] ?? '', numberOf(field[3])];
    const time = field[1] ?? '';
    return {
      lsn: field[0]!,
      time: time === '' ? undefined : new Date(Number(time)),
      kind,
      seq,
      name: name === '' ? undefined : name,
      attempt: numberOf(field[5]),
      value: this.valueOf(field[6] ?? '', this.placesOf(kind, name, seq)),
    };
  }

  private valueOf(text: string, places: readonly PayloadPlace[]): unknown {
    if (text === '') return undefined;
    if (isSealed(text)) return this.opened(text, places);
    for (const read of [decode, decodeFailure]) {
      try {
        return read(text);
      } catch {
        // Not of this kind.
      }
    }
    return text;
  }

  private opened(text: string, places: readonly PayloadPlace[]): unknown {
    let why: unknown = text;
    for (const place of places) {
      try {
        return this.payloads.read(text, place);
      } catch (error) {
        why = error;
      }
    }
    return why;
  }

  /** Where the payload of a record may belong. */
  private placesOf(kind: string, name: string, seq: number | undefined): readonly PayloadPlace[] {
    const { id } = this;
    switch (kind) {
      case 'childStarted':
        this.ends.set(seq!, [{ kind: 'result', id: name, name: '' }]);
        return [{ kind: 'input', id: name, name: '' }];
      case 'watchSet':
        this.ends.set(seq!, [{ kind: 'result', id: name, name: '' }, TASK_RESULT]);
        return [];
      case 'taskEnqueued':
        this.ends.set(seq!, [TASK_RESULT]);
        return [];
      case 'callSent':
        this.ends.set(seq!, [{ kind: 'callAnswer', id: name, name: '' }]);
        return [];
      case 'childEnded':
        return this.ends.get(seq!) ?? [];
      case 'stepCompleted':
        return [{ kind: 'step', id, name }];
      case 'stepHeartbeat':
        return [{ kind: 'heartbeat', id, name: '' }];
      case 'signalReceived':
        return [{ kind: 'signal', id, name }];
      case 'updateAccepted':
        return [{ kind: 'update', id, name }];
      case 'updateCompleted':
        return [{ kind: 'updateAnswer', id, name: '' }];
      case 'called':
        return [{ kind: 'call', id, name }];
      case 'callCompleted':
        return [{ kind: 'callAnswer', id, name: '' }];
      case 'ended':
        return [{ kind: 'result', id, name: '' }];
      default:
        // Records that begin a run.
        return [
          { kind: 'input', id, name: '' },
          { kind: 'input', id: '', name },
        ];
    }
  }
}

function numberOf(text: string | undefined): number | undefined {
  return text === undefined || text === '' ? undefined : Number(text);
}
