import { allReaders } from "../plan/lock-mode.ts";
import type { Findings } from "./findings.ts";
import { Holdings } from "./holdings.ts";
import { Limits } from "./limits.ts";
import { isFaultFree, numbersLostAt, type Schedule } from "../plan/schedule.ts";
import { toleranceMs, QueueOrder } from "./queue-order.ts";
import type { WaitingRequest } from "./waiting-request.ts";

/** A request without a reply. */
export interface Waiting {
  readonly request: WaitingRequest;
  /** When its reply is due at the latest; Infinity: never. */
  dueBy: number;
}

/** All that the judge knows of one key. */
export class KeyHistory {
  readonly holdings: Holdings;
  readonly order: QueueOrder;
  readonly limits: Limits;
  readonly waiting: Set<Waiting> = new Set();
  freeSince: number | undefined;
  /** The key may stay without a holder until then, because a lease was left to expire or to be adopted. */
  reservedUntil = 0;
  /** A waiter left the queue without a grant after a client had died. */
  hadWaiterLeave = false;
  /** When a request or a lease of a kind with shared grants was last seen, and when one of a mutex. */
  #kindSeenAt = { shared: -Infinity, mutex: -Infinity };
  readonly #isFaultFree: boolean;

  constructor(
    findings: Findings,
    key: string,
    schedule: Schedule,
    healthOf: {
      /** When the only server lost the grants that it had made until then. */
      readonly dataLostAt: () => number;
      readonly isQuiet: (client: number, since: number) => boolean;
    },
  ) {
    const { kind, limit, engine } = schedule;
    this.#isFaultFree = isFaultFree(schedule);
    this.limits = new Limits(kind === "semaphore" ? (limit as number) : allReaders);
    const context = {
      dataLostAt: healthOf.dataLostAt,
      isQuorum: engine === "quorum",
      numbersLostAt: numbersLostAt(schedule),
    };
    this.holdings = new Holdings(findings, this.limits, context);
    this.order = new QueueOrder(findings, key, healthOf.isQuiet);
  }

  /** Notes the kinds of the present requests and leases. */
  noteKinds(now: number): void {
    for (const { request } of this.waiting) {
      this.#kindSeenAt[request.isShared ? "shared" : "mutex"] = now;
    }
    for (const { grantRun } of this.holdings.present) {
      this.#kindSeenAt[grantRun.isShared ? "shared" : "mutex"] = now;
    }
  }

  /** Whether the key may have been of another kind than the request since then. A lease on its way to another process is of any kind. */
  wasOfOtherKind({ isShared }: WaitingRequest, since: number): boolean {
    return Math.max(this.reservedUntil, this.#kindSeenAt[isShared ? "mutex" : "shared"]) >= since;
  }

  /** @returns how long the grants of the dead client, present and still possible, may keep the key, ms */
  clientDied(client: number): number {
    this.order.clientDied(client);
    const { leases, downgrading } = this.holdings;
    const current = [...leases].filter(({ lease }) => lease.remainingMs() > 0);
    const granted = [...current, ...downgrading]
      .filter((one) => one.client === client)
      .concat(this.holdings.keptBy(client));
    const longestMs = Math.max(0, ...granted.map(({ ttlMs }) => ttlMs));
    const pending = [...this.waiting].filter(({ request }) => request.client === client);
    pending.forEach((one) => this.waiting.delete(one));
    return pending.reduce((sum, { request }) => sum + request.ttlMs, longestMs);
  }

  /** Whether the first waiter could be granted the key. The judge tests all waiters that may be first, because it does not know the order exactly. */
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
