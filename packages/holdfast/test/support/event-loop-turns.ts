import { readFileSync } from "node:fs";

/** The statistics of the recorded turns at one key. See contending.mjs. */
export interface TurnStatistics {
  /** The largest total weight of concurrent turns. */
  readonly heaviest: number;
  /** The number of turns of each task, without nested turns. */
  readonly counts: ReadonlyMap<string, number>;
  /** The turns in the order of their beginnings. */
  readonly startedOrder: readonly TurnRecord[];
  /** The pairs of concurrent tasks, as text. */
  readonly concurrentKinds: readonly string[];
}

export interface TurnRecord {
  readonly who: string;
  readonly weight: number;
  readonly token: bigint;
}

/** The statistics of each key. */
export function readTurnRecords(path: string): ReadonlyMap<string, TurnStatistics> {
  const keys = new Map<string, TurnReader>();
  for (const line of readFileSync(path, "latin1").trim().split("\n")) {
    const [what, who, weight, token, key] = line.split(" ") as [string, string, string, string, string];
    const reading = keys.get(key) ?? new TurnReader();
    keys.set(key, reading);
    const turn = { who, weight: Number(weight), token: BigInt(token) };
    if (what === "begin") {
      reading.begin(turn);
    } else {
      reading.end(turn);
    }
  }
  return keys;
}

class TurnReader implements TurnStatistics {
  heaviest = 0;
  readonly counts: Map<string, number> = new Map();
  readonly startedOrder: TurnRecord[] = [];
  readonly concurrentKinds: string[] = [];
  readonly #inside: TurnRecord[] = [];

  begin(turn: TurnRecord): void {
    const others = this.#inside.filter(({ who }) => who !== turn.who);
    this.concurrentKinds.push(...others.map(({ who }) => `${turn.who} beside ${who}`));
    this.#inside.push(turn);
    this.startedOrder.push(turn);
    this.heaviest = Math.max(
      this.heaviest,
      this.#inside.reduce((sum, { weight }) => sum + weight, 0),
    );
    this.counts.set(turn.who, (this.counts.get(turn.who) ?? 0) + Math.min(turn.weight, 1));
  }

  end(turn: TurnRecord): void {
    const index = this.#inside.findLastIndex(
      ({ who, weight, token }) => who === turn.who && weight === turn.weight && token === turn.token,
    );
    this.#inside.splice(index, 1);
  }
}

/** The writers without a larger fencing token than all earlier turns. A writer begins only after all earlier turns have ended. */
export function writersOutOfOrder({ startedOrder }: TurnStatistics): TurnRecord[] {
  let newest = -1n;
  return startedOrder.filter(({ weight, token }) => {
    const isWrong = weight > 1 && token <= newest;
    newest = token > newest ? token : newest;
    return isWrong;
  });
}
