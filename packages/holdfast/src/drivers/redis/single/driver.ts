import { hostname } from "node:os";

import type { Clock } from "../../../runtime/clock.ts";
import type {
  AcquireRequest,
  Capabilities,
  Driver,
  DriverListener,
  ExtendRequest,
  ExtendResult,
  Grant,
  ListQuery,
  PendingAcquire,
  PendingRequeue,
  VerifyResult,
} from "../../../driver.ts";
import { isLockError } from "../../../errors.ts";
import type { Random } from "../../../runtime/random.ts";
import type { FenceState, LockEvent, LockState, NodeState } from "../../../lock-state.ts";
import type { AuditPage, AuditQuery, BreakNote, BreakOutcome } from "../../../operator/audit.ts";
import { engineExpiry, validFrom } from "../../../validity.ts";
import { OperatorCalls } from "./operator-calls.ts";
import type { ServerDirectory } from "./server-directory.ts";
import { requestOnce } from "../server/perform-once.ts";
import type { KeySpace } from "../protocol/keys.ts";
import type { LockInspector } from "./inspect.ts";
import type { RedisLatches } from "./latches.ts";
import type { Reply } from "../protocol/operation.ts";
import type { OneServerSettings } from "../options.ts";
import type { RedisProcessDirectory } from "../processes/directory.ts";
import type { ReleaseQueue } from "../server/releases.ts";
import { ForeignLocks } from "./foreign-locks.ts";
import { RequestRegistry, type CreateDirectory } from "./request-registry.ts";
import { ServerAcquire } from "./server-acquire.ts";
import { isTokenOf } from "../protocol/token.ts";
import { PollingWatches } from "../../polling-watch.ts";
import { encodeMetadata, lossReasonOf } from "../protocol/metadata.ts";

/** Locks on one server, or on a cluster. The directory leads to the server of each lock. */
export class RedisDriver implements Driver {
  readonly clock: Clock;
  readonly random: Random;
  readonly capabilities: Capabilities;
  readonly latches: RedisLatches;
  readonly processes: RedisProcessDirectory;
  readonly #registry: RequestRegistry;
  readonly #releaseQueue: ReleaseQueue;
  readonly #servers: ServerDirectory;
  readonly #keySpace: KeySpace;
  readonly #inspector: LockInspector;
  readonly #operator: OperatorCalls;
  /** Undefined: the locks of no other library are observed. */
  readonly #foreignLocks: ForeignLocks | undefined;
  readonly #watches = new PollingWatches(this);

  constructor(settings: OneServerSettings, keyPrefix: string, createDirectory: CreateDirectory) {
    const { clock, random, claimMs } = settings;
    this.clock = clock;
    this.random = random;
    this.capabilities = {
      engine: "redis",
      kinds: ["mutex", "read-write", "semaphore", "latch"],
      guarantee: "server",
      waiting: "notify",
      requeue: true,
      fencingBlocks: true,
      maxTtlMs: 86_400_000,
      claimMs,
    };
    this.#registry = new RequestRegistry(settings, keyPrefix, createDirectory);
    const { servers, keySpace, inspector, latches, releaseQueue } = this.#registry;
    this.#servers = servers;
    this.#keySpace = keySpace;
    this.#inspector = inspector;
    this.#releaseQueue = releaseQueue;
    this.latches = latches;
    this.processes = this.#registry.processes;
    this.#operator = new OperatorCalls(servers, keySpace, this.random);
    const { observe } = settings;
    this.#foreignLocks = observe.length > 0 ? new ForeignLocks(this.#registry, observe) : undefined;
  }

  setOwner(owner: string): void {
    const since = String(Math.round(this.clock.wall()));
    this.#servers.setClientInfo([
      "owner",
      owner,
      "host",
      hostname(),
      "pid",
      String(process.pid),
      "since",
      since,
    ]);
  }

  checkKey(key: string): void {
    this.#servers.check(this.#keySpace.keysOf(key), key);
  }

  ticket(key: string): number | undefined {
    const server = this.#servers.serverFor(this.#keySpace.keysOf(key));
    return server.serverClock.isCertain ? server.serverClock.ticket() : undefined;
  }

  acquire(request: AcquireRequest): PendingAcquire {
    const begin = (): PendingAcquire =>
      this.#registry.begin(new ServerAcquire(this.#registry, request, this.#keySpace.keysOf(request.key)));
    return this.#foreignLocks ? this.#foreignLocks.acquire(request, begin) : begin();
  }

  requeue(previous: Grant, request: AcquireRequest): PendingRequeue {
    const keys = this.#keySpace.keysOf(request.key);
    const acquire = new ServerAcquire(this.#registry, request, keys, { ignoresQueueLimit: true });
    const pending = this.#registry.begin(acquire);
    const released = this.release(previous.key, previous.token, engineExpiry(previous.validity));
    return {
      result: pending.result,
      released,
      cancel: (reason) => pending.cancel(reason),
    };
  }

  async extend(request: ExtendRequest): Promise<ExtendResult> {
    const { ttlMs } = request;
    try {
      const reply = await this.sendExtension(request);
      return Number(reply.value) === 1
        ? { outcome: "extended", validity: validFrom(reply.sent, ttlMs) }
        : { outcome: "lost", reason: lossReasonOf(reply.value) };
    } catch (error) {
      if (isLockError(error, "kind-mismatch")) {
        return { outcome: "lost", reason: "stolen" }; // another kind or type has replaced the grant
      }
      return { outcome: "unknown", error };
    }
  }

  protected sendExtension({ key, token, fencingToken, ttlMs, info }: ExtendRequest): Promise<Reply> {
    return this.#perform(key, [
      "extend",
      token,
      String(ttlMs),
      encodeMetadata(info),
      fencingToken.toString(),
    ]);
  }

  async verify(key: string, token: string, fencingToken?: bigint): Promise<VerifyResult> {
    const reply = await this.#perform(key, ["verify", token]);
    const [status, remainingMs, first] = reply.value as unknown[];
    if (Number(status) !== 1) {
      return { outcome: "lost", reason: lossReasonOf(status) };
    } else if (fencingToken !== undefined && Number(first) > fencingToken) {
      return { outcome: "lost", reason: "expired" };
    }
    const validity = validFrom(reply.sent, Math.max(0, Number(remainingMs)));
    return { outcome: "valid", validity, hasUnknownEnd: Number(remainingMs) === -1 };
  }

  release(key: string, token: string, until: number): Promise<boolean> {
    const isOwn = isTokenOf(this.#registry.clientId, token);
    const keys = this.#keySpace.keysOf(key);
    const residue = this.#registry.releasing(token)?.releasing();
    return this.#releaseQueue.release({
      key,
      keys,
      token,
      entryTail: residue?.entryTail ?? "",
      until: Math.max(until, residue?.until ?? until),
      isOwn,
      earlier: residue?.earlier,
    });
  }

  downgrade(key: string, token: string, until: number): Promise<boolean> {
    return this.#releaseQueue.downgrade({
      key,
      keys: this.#keySpace.keysOf(key),
      token,
      entryTail: "",
      until,
    });
  }

  async setLimit(key: string, limit: number): Promise<void> {
    const { value } = await this.#perform(key, ["setLimit", String(limit)]);
    if (Number((value as unknown[])[1]) === 1) {
      this.#grantNext(key);
    }
  }

  listen(listener: DriverListener): () => void {
    return this.#registry.listen(listener);
  }

  inspect(key: string): Promise<LockState> {
    const inspect = (): Promise<LockState> => this.#inspector.inspect(key);
    return this.#foreignLocks ? this.#foreignLocks.inspect(key, inspect) : inspect();
  }

  list(query: ListQuery): Promise<{ locks: LockState[]; cursor: string | null }> {
    return this.#inspector.list(query);
  }

  watch(target: string | { readonly prefix: string }, signal: AbortSignal): AsyncIterable<LockEvent> {
    return this.#watches.watch(target, signal);
  }

  breakGrant(key: string, fencingToken: bigint, reason: string, note?: BreakNote): Promise<BreakOutcome> {
    return this.#operator.breakGrant({ key, fencingToken, reason, note }, () => this.#grantNext(key));
  }

  audit(query: AuditQuery): Promise<AuditPage> {
    return this.#operator.read(query);
  }

  checkFence(key: string, fencingToken: bigint): Promise<FenceState> {
    return this.#inspector.checkFence(key, fencingToken);
  }

  nodes(): Promise<NodeState[]> {
    return this.#servers.states();
  }

  async close(): Promise<void> {
    this.#registry.cancelAll();
    await this.#releaseQueue.idle(); // bounded by the command budget
    this.#releaseQueue.close();
    this.processes.close();
    this.#servers.close();
  }

  /**
   * Serves the queue of a free lock: a release of the token `-`, which holds nothing, makes the script remove dead waiters and grant to the
   * first live one. It is repeated until no dead waiter is left.
   */
  #grantNext(key: string): void {
    const until = this.clock.now() + this.#registry.commandTimeoutMs;
    this.#releaseQueue.cleanUp({ key, keys: this.#keySpace.keysOf(key), token: "-", entryTail: "", until });
  }

  /** One operation, once. Rejects with an `EngineError`, at the latest after `commandTimeoutMs`. */
  #perform(key: string, args: readonly string[]): Promise<Reply> {
    const keys = this.#keySpace.keysOf(key);
    return requestOnce(this.#servers.serverFor(keys), { key, keys, args });
  }
}
