import { whole } from "../plan/lock-mode.ts";
import type { Findings } from "./findings.ts";
import { Holdings } from "./holdings.ts";
import { Limits } from "./limits.ts";
import { isFlawless, numbersForgottenAt, type Schedule } from "../plan/schedule.ts";
import { toleranceMs, Turns, type Asking } from "./queue-order.ts";

/** Somebody who wants an answer. */
export interface Waiting {
  readonly asking: Asking;
  /** When it is to be answered at the latest; Infinity: it waits for ever. */
  dueBy: number;
}

/** One key. */
export class KeyHistory {
  readonly holdings: Holdings;
  readonly turns: Turns;
  readonly limits: Limits;
  readonly waiting: Set<Waiting> = new Set();
  freeSince: number | undefined;
  /** Nobody may have it before: somebody left it to expire, or to be adopted. */
  takenUntil = 0;
  /** Somebody has left its queue without it, when another was dead. */
  wasLeft = false;
  readonly #isFlawless: boolean;

  constructor(
    findings: Findings,
    key: string,
    schedule: Schedule,
    standing: {
      /** When the only server forgot what it had granted until then. */
      readonly forgotAt: () => number;
      readonly isQuiet: (client: number, since: number) => boolean;
    },
  ) {
    const { kind, limit, engine } = schedule;
    this.#isFlawless = isFlawless(schedule);
    this.limits = new Limits(kind === "semaphore" ? (limit as number) : whole);
    const judges = {
      forgotAt: standing.forgotAt,
      isQuorum: engine === "quorum",
      numbersForgottenAt: numbersForgottenAt(schedule),
    };
    this.holdings = new Holdings(findings, this.limits, judges);
    this.turns = new Turns(findings, key, standing.isQuiet);
  }

  /** Whether whoever is first in the queue could be let in: as it is not known exactly who that is, all who may be. */
  get hasRoomForTheFirst(): boolean {
    const waiting = [...this.turns.waiting].filter(({ isOut }) => !isOut);
    const first = Math.min(...waiting.map(({ since }) => since));
    const heads = this.#isFlawless
      ? waiting.filter(({ placedFrom }) => placedFrom <= first + toleranceMs)
      : waiting;
    const most = Math.max(...heads.map(({ weight }) => weight));
    return heads.length > 0 && this.holdings.used + most <= this.limits.now;
  }
}
