import { allReaders } from "../plan/lock-mode.ts";
import type { Findings } from "./findings.ts";
import { Holdings } from "./holdings.ts";
import { Limits } from "./limits.ts";
import { isFaultFree, numbersLostAt, type Schedule } from "../plan/schedule.ts";
import { toleranceMs, QueueOrder } from "./queue-order.ts";
import type { WaitingRequest } from "./waiting-request.ts";

/** Somebody who wants an answer. */
export interface Waiting {
  readonly request: WaitingRequest;
  /** When it is to be answered at the latest; Infinity: it waits for ever. */
  dueBy: number;
}

/** One key. */
export class KeyHistory {
  readonly holdings: Holdings;
  readonly order: QueueOrder;
  readonly limits: Limits;
  readonly waiting: Set<Waiting> = new Set();
  freeSince: number | undefined;
  /** Nobody may have it before: somebody left it to expire, or to be adopted. */
  reservedUntil = 0;
  /** Somebody has left its queue without it, when another was dead. */
  hadWaiterLeave = false;
  readonly #isFaultFree: boolean;

  constructor(
    findings: Findings,
    key: string,
    schedule: Schedule,
    healthOf: {
      /** When the only server forgot what it had granted until then. */
      readonly forgotAt: () => number;
      readonly isQuiet: (client: number, since: number) => boolean;
    },
  ) {
    const { kind, limit, engine } = schedule;
    this.#isFaultFree = isFaultFree(schedule);
    this.limits = new Limits(kind === "semaphore" ? (limit as number) : allReaders);
    const context = {
      dataLostAt: healthOf.forgotAt,
      isQuorum: engine === "quorum",
      numbersLostAt: numbersLostAt(schedule),
    };
    this.holdings = new Holdings(findings, this.limits, context);
    this.order = new QueueOrder(findings, key, healthOf.isQuiet);
  }

  /** @returns how long what the client holds, and what it is granted yet, may keep the key, ms */
  clientDied(client: number): number {
    this.order.clientDied(client);
    const { leases, downgrading } = this.holdings;
    const current = [...leases].filter(({ lease }) => lease.remainingMs() > 0);
    const granted = [...current, ...downgrading].filter((one) => one.client === client);
    const longestMs = Math.max(0, ...granted.map(({ ttlMs }) => ttlMs));
    const pending = [...this.waiting].filter(({ request }) => request.client === client);
    pending.forEach((one) => this.waiting.delete(one));
    return pending.reduce((sum, { request }) => sum + request.ttlMs, longestMs);
  }

  /** Whether whoever is first in the queue could be let in: as it is not known exactly who that is, all who may be. */
  get canGrantFirst(): boolean {
    const waiting = [...this.order.waiting].filter(({ isDequeued }) => !isDequeued);
    const first = Math.min(...waiting.map(({ since }) => since));
    const heads = this.#isFaultFree
      ? waiting.filter(({ arrivedFrom }) => arrivedFrom <= first + toleranceMs)
      : waiting;
    const most = Math.max(...heads.map(({ weight }) => weight));
    return heads.length > 0 && this.holdings.used + most <= this.limits.now;
  }
}
