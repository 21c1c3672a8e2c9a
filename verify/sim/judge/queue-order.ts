import type { Findings } from "./findings.ts";
import type { WaitingRequest } from "./waiting-request.ts";

interface SuspectedOvertake {
  readonly request: WaitingRequest;
  readonly earlier: WaitingRequest;
  readonly description: string;
  /** When it is known whether it is true. */
  readonly dueAt: number;
}

/** By how much a later arrival may go before an earlier one at the servers, ms: see {@link QueueOrder}. */
export const toleranceMs = 30;

/** How often in a row a lease may be handed over inside a process while others wait. */
const maxHandovers = 16;

/**
 * Of one key: whether those who wait are served in turn.
 *
 * Inside one client's line nobody is overtaken, whatever happens. Between clients the place in the queue is the time of arrival by
 * the servers' clocks, which each client knows within half a round trip, and who is still on the way to a free lock has no place yet;
 * both are below 5 ms each way here, at each of the two. On a quorum a client's first place is by the clocks of a majority, where the
 * others have not told their time yet: as much earlier as that is behind the clocks of all (see `unsyncedAheadMs`). Since a
 * client's last answer its clock and the servers' have drifted apart. So where
 * nothing goes wrong nobody who came `toleranceMs` later is granted first, but by a hand-over inside a process, and that `longestRun`
 * times in a row at the most. Of a semaphore only the first of a client's line is sure to stand at the servers.
 */
export class QueueOrder {
  readonly #findings: Findings;
  readonly #key: string;
  readonly #isQuiet: (client: number, since: number) => boolean;
  readonly #requests = new Set<WaitingRequest>();
  readonly #suspected: SuspectedOvertake[] = [];

  /** @param isQuiet whether nothing goes wrong for a client since then */
  constructor(findings: Findings, key: string, isQuiet: (client: number, since: number) => boolean) {
    this.#findings = findings;
    this.#key = key;
    this.#isQuiet = isQuiet;
  }

  add(request: WaitingRequest): void {
    this.#requests.add(request);
    this.#updateHeads();
  }

  remove(request: WaitingRequest): void {
    request.isSettled = true;
    this.#requests.delete(request);
    this.#updateHeads();
  }

  #updateHeads(): void {
    const queuesWithHead = new Set<string>();
    for (const request of this.#requests) {
      const queue = `${request.client} ${request.weight}`;
      if (request.mayWaitInMemory && !queuesWithHead.has(queue)) {
        queuesWithHead.add(queue);
        request.headSince = Math.min(request.headSince, this.#findings.now);
      }
    }
  }

  clientDied(client: number): void {
    for (const request of this.#requests) {
      if (request.client === client) {
        this.remove(request);
      }
    }
  }

  /**
   * An operator ends the grant of that client: its local queue waited for that lease, without a place at the servers. On a quorum the
   * grant may be the votes of a request that waits for the majority. Without them the request has no place, because a break ends a
   * grant and its queue entry, and the request queues again behind others.
   * @param isLease a caller was told of the grant, so it is not the votes of a request
   */
  grantBroken(client: number, isLease: boolean): void {
    for (const request of this.#requests) {
      if (request.client === client && (request.usesLocalQueue || !isLease)) {
        request.isQueued = false;
      }
    }
  }

  /** There is less room from now on: who wants more is out of the queue. */
  limitLowered(limit: number): void {
    for (const request of this.#requests) {
      request.isDequeued ||= request.weight > limit;
    }
  }

  /** Who waits. */
  get waiting(): ReadonlySet<WaitingRequest> {
    return this.#requests;
  }

  /** @param handovers how often its grant was handed over in memory */
  granted(request: WaitingRequest, handovers: number): void {
    const mayPass = handovers > 0 && handovers <= maxHandovers;
    for (const earlier of this.#requests) {
      const description = this.#isOvertake(request, earlier, mayPass);
      if (description !== undefined && earlier !== request) {
        // Those who share it may be let in together, and are told by messages of their own.
        const dueAt = this.#findings.now + (request.isShared ? toleranceMs : 0);
        this.#suspected.push({ request, earlier, description, dueAt });
      }
    }
  }

  /** Who is overtaken is so only if he still waits when that moment has passed: who was frozen times out late, behind others. */
  check(): void {
    const { now } = this.#findings;
    while (this.#suspected.length > 0 && (this.#suspected[0] as SuspectedOvertake).dueAt < now) {
      const { request, earlier, description } = this.#suspected.shift() as SuspectedOvertake;
      if (!earlier.isSettled && !(request.isShared && now >= earlier.until)) {
        this.#findings.add(
          "order",
          `client ${request.client}, who asks for ${this.#key} since ${request.since.toFixed(3)}, is granted ${description} client ${earlier.client}, who waits since ${earlier.since.toFixed(3)}`,
        );
      }
    }
  }

  #isOvertake(request: WaitingRequest, earlier: WaitingRequest, mayPass: boolean): string | undefined {
    if (this.#findings.now >= earlier.until) {
      return undefined;
    }
    if (request.client === earlier.client && request.usesLocalQueue && earlier.usesLocalQueue) {
      return earlier.serial < request.serial ? "in the same line before" : undefined;
    }
    if (mayPass || !isQueuedAt(this.#findings.now, earlier) || !isEarlier(earlier, request)) {
      return undefined;
    }
    // A place is an estimate of the servers' clocks, and a client that a fault keeps from its turn loses it.
    const isJudged = [request, earlier].every(({ client }) => this.#isQuiet(client, earlier.judgedSince));
    return isJudged ? "before" : this.#findings.skip("order: a fault disturbs one of the two");
  }
}

function isQueuedAt(now: number, request: WaitingRequest): boolean {
  const { isQueued, isDequeued, until, mayWaitInMemory, headSince } = request;
  const mayBeInTransit = mayWaitInMemory && now < headSince + toleranceMs;
  return isQueued && !mayBeInTransit && !isDequeued && now < until;
}

/** Those of one client have their places in the order in which they came, but where each asks the servers by itself. */
function isEarlier(earlier: WaitingRequest, request: WaitingRequest): boolean {
  return request.client === earlier.client && !request.isShared
    ? earlier.serial < request.serial
    : earlier.arrivedTo + toleranceMs < request.arrivedFrom;
}
