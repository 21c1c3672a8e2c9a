import type { Clock } from "../../runtime/clock.ts";
import type {
  AcquireRequest,
  Capabilities,
  Driver,
  DriverListener,
  ExtendRequest,
  ExtendResult,
  Grant,
  PendingAcquire,
  PendingRequeue,
  VerifyResult,
} from "../../driver.ts";
import { closedError, EngineError, LeaseLostError, LockError } from "../../errors.ts";
import { backoffMs, type Random } from "../../runtime/random.ts";
import type { FenceState, LockEvent, LockState, NodeState } from "../../lock-state.ts";
import { pause } from "../../runtime/timeout.ts";
import type { HttpResponse, Client, HttpRequestSpec } from "./client.ts";
import { ArrivalOrder } from "../../runtime/arrival-order.ts";
import { errorOf, leaseOf, problemOf } from "./problems.ts";
import { HttpAcquire } from "./acquire-request.ts";
import type { AcquireHost } from "./one-request.ts";
import { validityOf } from "./acquire-wire.ts";
import type { AuditPage, AuditQuery, BreakNote, BreakOutcome } from "../../operator/audit.ts";
import { auditRecordOf } from "./audit-record.ts";
import { lockStateOf } from "./lock-state.ts";
import type { ProcessDirectory } from "../../processes/process-state.ts";
import { processListOf } from "./processes.ts";
import { watchByEvents, type WatchHost } from "./watch.ts";
import { withKeys, type WireAudit, type WireLocks, type WireLock, type WireNodes } from "./wire.ts";

/** The guarantee depends on the engine of the service, which reports it in each lease. `server` holds for every engine. */
const capabilities: Capabilities = {
  engine: "http",
  kinds: ["mutex", "read-write", "semaphore"],
  guarantee: "server",
  waiting: "notify",
  requeue: false,
  fencingBlocks: false,
  maxTtlMs: 86_400_000,
  claimMs: 3_000,
};

/** Locks by a lock service. A token is a lease id without its keys. */
export class HttpDriver implements Driver, AcquireHost, WatchHost {
  readonly clock: Clock;
  readonly random: Random;
  readonly capabilities: Capabilities = capabilities;
  readonly client: Client;
  readonly arrivalOrder: ArrivalOrder = new ArrivalOrder();
  readonly requestTimeoutMs: number;
  owner = "unknown";
  readonly #open = new Set<HttpAcquire>();
  readonly #releases = new Set<Promise<unknown>>();
  readonly #closing = new AbortController();

  constructor(client: Client, random: Random, requestTimeoutMs: number) {
    this.client = client;
    this.clock = client.clock;
    this.random = random;
    this.requestTimeoutMs = requestTimeoutMs;
  }

  setOwner(owner: string): void {
    this.owner = owner;
  }

  checkKey(): void {
    // The engine of the service checks the key.
  }

  /** The service orders its queue. */
  ticket(): undefined {
    return undefined;
  }

  acquire(request: AcquireRequest): PendingAcquire {
    if (this.#closing.signal.aborted) {
      return { result: Promise.reject(closedError(request.key)), cancel: () => undefined };
    }
    const pending = new HttpAcquire(this, request);
    this.#open.add(pending);
    const settled = () => this.#open.delete(pending);
    pending.result.then(settled, settled);
    return pending;
  }

  requeue(previous: Grant, request: AcquireRequest): PendingRequeue {
    const released = this.release(previous.key, previous.token, previous.validity.until);
    return Object.assign(this.acquire(request), { released });
  }

  async extend({ key, token, ttlMs, info }: ExtendRequest): Promise<ExtendResult> {
    try {
      const { owner, reason, labels } = info ?? {}; // without hand-over there is neither a new fencing token nor a local waiter
      const path = `${pathOf(key, token)}/renew`;
      const response = await this.#callOnce(
        { method: "POST", path, body: { ttlMs, owner, reason, labels } },
        key,
      );
      return {
        outcome: "extended",
        validity: validityOf(leaseOf(response.status, response.body), response.sent),
      };
    } catch (error) {
      return error instanceof LeaseLostError
        ? { outcome: "lost", reason: error.reason }
        : { outcome: "unknown", error };
    }
  }

  async verify(key: string, token: string): Promise<VerifyResult> {
    try {
      const { status, body, sent } = await this.#callOnce({ method: "GET", path: pathOf(key, token) }, key);
      const lease = leaseOf(status, body);
      return { outcome: "valid", validity: validityOf(lease, sent), hasUnknownEnd: lease.validMs === 0 };
    } catch (error) {
      if (error instanceof LeaseLostError) {
        return { outcome: "lost", reason: error.reason };
      }
      throw error;
    }
  }

  release(key: string, token: string, until: number): Promise<boolean> {
    return this.#releaseInBackground({ method: "DELETE", path: pathOf(key, token) }, key, until);
  }

  downgrade(key: string, token: string, until: number): Promise<boolean> {
    return this.#releaseInBackground(
      { method: "POST", path: `${pathOf(key, token)}/downgrade`, body: {} },
      key,
      until,
    );
  }

  async setLimit(key: string, limit: number): Promise<void> {
    await this.#callOnce({ method: "POST", path: "/v1/lock/limit", body: { key, limit } }, key);
  }

  listen(_listener: DriverListener): () => void {
    return () => undefined; // the next renewal reports a loss
  }

  async inspect(key: string): Promise<LockState> {
    const { body } = await this.#callOnce({ method: "GET", path: `/v1/lock?${query({ key })}` }, key);
    return lockStateOf(body as WireLock);
  }

  async list(listQuery: { prefix: string; cursor: string | null; limit: number }): Promise<{
    locks: LockState[];
    cursor: string | null;
  }> {
    const { prefix, cursor, limit } = listQuery;
    const parameters = query({ prefix, limit: String(limit), ...(cursor !== null && { cursor }) });
    const { body } = await this.#callOnce({ method: "GET", path: `/v1/locks?${parameters}` });
    const { locks, cursor: next } = body as WireLocks;
    return { locks: locks.map(lockStateOf), cursor: next };
  }

  watch(target: string | { readonly prefix: string }, signal: AbortSignal): AsyncIterable<LockEvent> {
    return watchByEvents(this, target, AbortSignal.any([signal, this.#closing.signal]));
  }

  async breakGrant(
    key: string,
    fencingToken: bigint,
    reason: string,
    note?: BreakNote,
  ): Promise<BreakOutcome> {
    const body = { key, fencingToken: fencingToken.toString(), reason, by: note?.by };
    const response = await this.#callUntilAnswered({ method: "POST", path: "/v1/lock/break", body });
    if (response.status !== 200 && problemOf(response).code !== "fence-mismatch") {
      throw errorOf(problemOf(response), key);
    }
    return response.status === 200
      ? { isBroken: true, auditId: (response.body as { auditId?: string } | undefined)?.auditId }
      : { isBroken: false };
  }

  async audit({ key, id, cursor, limit }: AuditQuery): Promise<AuditPage> {
    const more = {
      ...(key !== undefined && { key }),
      ...(id !== undefined && { id }),
      ...(cursor !== null && { cursor }),
    };
    const path = `/v1/audit?${query({ limit: String(limit), ...more })}`;
    const { body } = await this.#callOnce({ method: "GET", path }, key);
    const { records, cursor: next } = body as WireAudit;
    return { records: records.map(auditRecordOf), cursor: next };
  }

  async checkFence(key: string, fencingToken: bigint): Promise<FenceState> {
    const body = { key, fencingToken: fencingToken.toString() };
    const response = await this.#callOnce({ method: "POST", path: "/v1/fence/check", body }, key);
    return (response.body as { fence: FenceState }).fence;
  }

  readonly processes: ProcessDirectory = {
    serve: () => undefined, // the service does not know its clients
    ask: async ({ key, timeoutMs }) => {
      const parameters = query({ timeoutMs: String(timeoutMs), ...(key !== undefined && { key }) });
      const { body } = await this.#callOnce({ method: "GET", path: `/v1/processes?${parameters}` }, key);
      return processListOf(body);
    },
  };

  async nodes(): Promise<NodeState[]> {
    const { body } = await this.#callOnce({ method: "GET", path: "/v1/nodes" });
    return [...(body as WireNodes).nodes];
  }

  /** Waits for the open releases, each for at most the request timeout. */
  async close(): Promise<void> {
    this.#closing.abort();
    for (const request of this.#open) {
      request.cancel(closedError());
    }
    await Promise.allSettled(this.#releases);
    this.client.close();
  }

  async #callOnce(spec: HttpRequestSpec, key?: string): Promise<HttpResponse> {
    const response = await this.#callUntilAnswered(spec);
    const { status, body } = response;
    if (status < 200 || status >= 300 || typeof body !== "object" || body === null) {
      throw errorOf(problemOf(response), key);
    }
    return response;
  }

  #callUntilAnswered(spec: HttpRequestSpec): Promise<HttpResponse> {
    return this.client.request(spec, this.requestTimeoutMs);
  }

  /**
   * Retries a release or downgrade until the service has answered or the grant has expired.
   * Rejects after one request timeout, and continues in the background.
   */
  #releaseInBackground(spec: HttpRequestSpec, key: string, until: number): Promise<boolean> {
    const { clock } = this;
    const confirmed = this.#retryUntil(spec, key, until);
    const attempt = new Promise<boolean>((resolve, reject) => {
      const timeout = clock.setTimer(() => reject(noReply(key)), this.requestTimeoutMs, true);
      confirmed.then(resolve, reject).finally(() => clock.clearTimer(timeout));
    });
    this.#releases.add(attempt);
    const forget = () => this.#releases.delete(attempt);
    attempt.then(forget, forget);
    return attempt;
  }

  async #retryUntil(spec: HttpRequestSpec, key: string, until: number): Promise<boolean> {
    for (let failures = 0; ; failures += 1) {
      try {
        const { body, isRepeat } = await this.#callOnce(spec, key);
        // A repeat may report `false`, because the earlier request, whose reply was lost, has already had its effect.
        return (body as { released: boolean }).released || failures > 0 || isRepeat;
      } catch (error) {
        const isLastTry = this.clock.now() >= until || this.#closing.signal.aborted;
        if (!(error instanceof LockError) || !error.retryable || isLastTry) {
          throw error;
        }
        await pause(this.clock, backoffMs(this.random, failures, 2_000), false);
      }
    }
  }
}

function noReply(key: string): EngineError {
  const message =
    "The lock service did not confirm the request; the client repeats the request in the background";
  return new EngineError(message, { key, outcome: "unknown", retryable: true });
}

function pathOf(key: string, token: string): string {
  return `/v1/leases/${withKeys(token, [key])}`;
}

function query(values: Readonly<Record<string, string>>): string {
  return new URLSearchParams(values).toString();
}
