import type { Findings } from "./findings.ts";
import type { WaitingRequest } from "./waiting-request.ts";

interface PossibleOvertake {
  readonly request: WaitingRequest;
  readonly earlier: WaitingRequest;
  readonly description: string;
  /** When the judge knows whether the earlier request was really overtaken. */
  readonly dueAt: number;
}

/** By how much a later arrival may precede an earlier arrival at the servers, ms: see {@link QueueOrder}. */
export const toleranceMs = 30;

/** How often in a row a lease may be handed over inside a process while other processes wait. */
const maxHandovers = 16;

/**
 * Checks that the waiters of one key are granted the lock in turn.
 *
 * Inside the local queue of one client no request is overtaken. Between clients the ticket is the time of arrival by the servers' clocks.
 * Each client knows that time within half a round trip, and a request in transit to a free lock has no queue entry yet. Both errors are
 * below 5 ms each way here, for each of the two requests. On a quorum the first ticket of a client is by the clocks of a majority,
 * because the other nodes have not reported their time. That ticket is too early by `unsyncedAheadMs` at most. After the last reply to a
 * client, its clock and the servers' clocks drift apart.
 *
 * So without faults no request that arrived `toleranceMs` later is granted first. A hand-over inside a process is the exception, at
 * most `maxHandovers` times in a row. Of a semaphore, only the first request of a local queue is sure to have a queue entry.
 */
export class QueueOrder {
  readonly #findings: Findings;
  readonly #key: string;
  readonly #isQuiet: (client: number, since: number) => boolean;
  readonly #requests = new Set<WaitingRequest>();
  readonly #possibleOvertakes: PossibleOvertake[] = [];

  /** @param isQuiet whether no fault has disturbed a client since then */
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
   * An operator breaks the grant of that client. Its local queue waited for that lease, without queue entries at the servers. On a quorum
   * the grant may be the votes of a request that waits for the majority. A break removes these votes and the queue entry, so that the
   * request queues again after other requests.
   * @param isLease a caller got the grant as a lease, so the grant is not the votes of a waiting request
   */
  grantBroken(client: number, isLease: boolean): void {
    for (const request of this.#requests) {
      if (request.client === client && (request.usesLocalQueue || !isLease)) {
        request.isQueued = false;
      }
    }
  }

  /**
   * A lease of that client was transferred, or left to expire. No release hands its grant over in memory, so the next request of the local
   * queue is sent to the servers now.
   */
  leaseHandedOn(client: number): void {
    for (const request of this.#requests) {
      if (request.client === client && request.usesLocalQueue) {
        request.sentSince = this.#findings.now;
      }
    }
  }

  /** The limit is lower from now on. Requests for more permits lose their queue entry. */
  limitLowered(limit: number): void {
    for (const request of this.#requests) {
      request.isDequeued ||= request.weight > limit;
    }
  }

  /** The waiting requests, in the order of their start. */
  get waiting(): ReadonlySet<WaitingRequest> {
    return this.#requests;
  }

  /** @param handovers how often the grant was handed over in memory */
  granted(request: WaitingRequest, handovers: number): void {
    const mayPass = handovers > 0 && handovers <= maxHandovers;
    for (const earlier of this.#requests) {
      const description = this.#isOvertake(request, earlier, mayPass);
      if (description !== undefined && earlier !== request) {
        // Holders that share the key may be granted at the same time, each with its own notification.
        const dueAt = this.#findings.now + (request.isShared ? toleranceMs : 0);
        this.#possibleOvertakes.push({ request, earlier, description, dueAt });
      }
    }
  }

  /** A request was overtaken only if it still waits after that time, because a request of a frozen process times out late. */
  check(): void {
    const { now } = this.#findings;
    while (
      this.#possibleOvertakes.length > 0 &&
      (this.#possibleOvertakes[0] as PossibleOvertake).dueAt < now
    ) {
      const { request, earlier, description } = this.#possibleOvertakes.shift() as PossibleOvertake;
      const isOvertaken = !earlier.isSettled && !(request.isShared && now >= earlier.until);
      // A fault may have begun since the other grant, such as a pause with the own notification.
      if (isOvertaken && (request.client === earlier.client || this.#isJudged(request, earlier))) {
        this.#findings.add(
          "order",
          `client ${request.client} with a request for ${this.#key} since ${request.since.toFixed(3)} was granted ${description} client ${earlier.client} with a request since ${earlier.since.toFixed(3)}`,
        );
      }
    }
  }

  #isOvertake(request: WaitingRequest, earlier: WaitingRequest, mayPass: boolean): string | undefined {
    if (this.#findings.now >= earlier.until) {
      return undefined;
    }
    if (request.client === earlier.client && request.usesLocalQueue && earlier.usesLocalQueue) {
      return earlier.serial < request.serial ? "before, in the same local queue," : undefined;
    }
    if (mayPass || !isQueuedAt(this.#findings.now, earlier) || !isEarlier(earlier, request)) {
      return undefined;
    }
    return this.#isJudged(request, earlier) ? "before" : undefined;
  }

  /** A ticket is an estimate of the servers' clocks, and a client that misses its turn because of a fault loses its turn. */
  #isJudged(request: WaitingRequest, earlier: WaitingRequest): boolean {
    const isQuiet = [request, earlier].every(({ client }) => this.#isQuiet(client, earlier.judgedSince));
    if (!isQuiet) {
      this.#findings.skip("order: a fault disturbs one of the two clients");
    }
    return isQuiet;
  }
}

function isQueuedAt(now: number, request: WaitingRequest): boolean {
  const { isQueued, isDequeued, until, mayWaitInMemory, headSince, sentSince } = request;
  const mayBeInTransit = (mayWaitInMemory && now < headSince + toleranceMs) || now < sentSince + toleranceMs;
  return isQueued && !mayBeInTransit && !isDequeued && now < until;
}

/** The tickets of one client rise in the order of its requests, except if each request goes to the servers directly. */
function isEarlier(earlier: WaitingRequest, request: WaitingRequest): boolean {
  return request.client === earlier.client && !request.isShared
    ? earlier.serial < request.serial
    : earlier.arrivedTo + toleranceMs < request.arrivedFrom;
}
