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
  MultiAcquired,
  VerifyResult,
} from "../../../driver.ts";
import type { LossReason } from "../../../errors.ts";
import type { Random } from "../../../runtime/random.ts";
import {
  exists,
  type FenceState,
  type Holder,
  type LockEvent,
  type LockState,
  type NodeState,
} from "../../../lock-state.ts";
import { UnorderedSet } from "../../../runtime/unordered-set.ts";
import { TimerQueue } from "../../../runtime/timer-queue.ts";
import { engineExpiry, validFrom } from "../../../validity.ts";
import { pageBudgetMs, type ServerDirectory } from "./server-directory.ts";
import { clonedError, engineError, outcomeOf, serverRefusal } from "../server/errors.ts";
import { toLockState, compareFence, parseSnapshot, type LockSnapshot } from "../server/lock-snapshot.ts";
import { KeySpace, type LockKeys } from "../protocol/keys.ts";
import { RedisLatches } from "./latches.ts";
import type { PushedGrant } from "../protocol/messages.ts";
import type { RedisServer, ServerListener } from "../server/server.ts";
import type { Reply } from "../protocol/operation.ts";
import type { RedisSettings } from "../options.ts";
import { ReleaseQueue } from "../server/release-queue.ts";
import type { Wakeable } from "../server/server-call.ts";
import type { RequestHost } from "./request-host.ts";
import { ServerAcquire } from "./request.ts";
import type { NotificationStatus } from "../server/subscriber.ts";
import { acquireMany } from "./multi-key.ts";
import { TokenMap } from "../../../runtime/token-map.ts";
import { attemptToken, clientIdOf, createToken } from "../protocol/token.ts";
import { PollingWatches } from "../polling-watch.ts";
import { encodeMetadata, lossReasonOf } from "../protocol/metadata.ts";

/** Makes the directory of a driver instance. */
export type CreateDirectory = (clientId: string, listener: ServerListener) => ServerDirectory;

/** Locks on what is one Redis to its users: a server, or a cluster, as its directory knows. */
export class RedisDriver implements Driver, RequestHost<ServerAcquire>, ServerListener {
  readonly clock: Clock;
  readonly random: Random;
  readonly capabilities: Capabilities;
  readonly commandTimeoutMs: number;
  readonly claimMs: number;
  readonly timers: TimerQueue<Wakeable>;
  readonly releaseQueue: ReleaseQueue;
  readonly latches: RedisLatches;
  readonly #directory: ServerDirectory;
  readonly #keySpace: KeySpace;
  #clientId: string;
  readonly #requests = new UnorderedSet<ServerAcquire>();
  /** Those that wait in a server's queue, by token: of many, messages come for these. */
  readonly #queuedRequests = new TokenMap<ServerAcquire>();
  readonly #listeners = new Set<DriverListener>();
  readonly #watches = new PollingWatches(this);

  constructor(settings: RedisSettings, keyPrefix: string, createDirectory: CreateDirectory) {
    const { clock, random, commandTimeoutMs, claimMs, prefix } = settings;
    this.clock = clock;
    this.random = random;
    this.commandTimeoutMs = commandTimeoutMs;
    this.claimMs = claimMs;
    this.#keySpace = new KeySpace(keyPrefix, prefix);
    this.#clientId = random.id();
    this.capabilities = {
      kinds: ["mutex", "read-write", "semaphore", "latch"],
      guarantee: "server",
      waiting: "notify",
      requeue: true,
      fencingBlocks: true,
      maxTtlMs: 86_400_000,
      claimMs,
    };
    this.#directory = createDirectory(this.#clientId, this);
    this.releaseQueue = new ReleaseQueue(
      (keys) => this.serverFor(keys),
      clock,
      random,
      commandTimeoutMs,
      (grant, sent) => this.#requestOf(grant.token)?.grantedByRelease(grant, sent),
    );
    this.timers = new TimerQueue(clock, (request) => request.wake(), true);
    this.latches = new RedisLatches({
      serverFor: (keys) => this.serverFor(keys),
      clock,
      random,
      commandTimeoutMs,
      keysOf: (key) => this.#keySpace.keysOf(key),
      tokenOf: (key, attemptId) => attemptToken({ key, attemptId, clientId: this.#clientId }, random),
    });
  }

  setOwner(owner: string): void {
    const since = String(Math.round(this.clock.wall()));
    this.#directory.setClientInfo([
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
    this.#directory.check(this.#keySpace.keysOf(key), key);
  }

  ticket(key: string): number | undefined {
    const server = this.serverFor(this.#keySpace.keysOf(key));
    return server.serverClock.isCertain ? server.serverClock.ticket() : undefined;
  }

  acquire(request: AcquireRequest): PendingAcquire {
    return this.begin(new ServerAcquire(this, request, this.#keySpace.keysOf(request.key)));
  }

  canAcquireMany(keys: readonly string[]): boolean {
    return this.#directory.canAcquireMany(keys.map((key) => this.#keySpace.keysOf(key)));
  }

  async acquireMany(requests: readonly AcquireRequest[]): Promise<MultiAcquired> {
    const server = this.serverFor(this.#keySpace.keysOf(requests[0]?.key ?? ""));
    if (!server.isTimeKnown) {
      await server.handshake();
    }
    const keyRequests = requests.map((request) => {
      const { key, lockMode, ticket = server.serverClock.ticket() } = request;
      const token = createToken({ clientId: this.#clientId, lockMode, ticket }, this.random);
      return { request, keys: this.#keySpace.keysOf(key), token };
    });
    const { clock, releaseQueue, commandTimeoutMs } = this;
    const clientId = this.#clientId;
    const result = await acquireMany(keyRequests, { server, clock, releaseQueue, commandTimeoutMs });
    if (clientId !== this.#clientId && result.outcome === "granted") {
      throw clonedError();
    }
    return result;
  }

  requeue(previous: Grant, request: AcquireRequest): PendingRequeue {
    const pending = this.begin(
      new ServerAcquire(this, request, this.#keySpace.keysOf(request.key), { ignoresQueueLimit: true }),
    );
    const released = this.release(previous.key, previous.token, engineExpiry(previous.validity));
    return {
      result: pending.result,
      released,
      cancel: (reason) => pending.cancel(reason),
    };
  }

  async extend({ key, token, fencingToken, ttlMs, info }: ExtendRequest): Promise<ExtendResult> {
    this.releaseQueue.inUse.extend(token, ttlMs);
    try {
      const args = ["extend", token, String(ttlMs), encodeMetadata(info), fencingToken.toString()];
      const reply = await this.#perform(key, args);
      return Number(reply.value) === 1
        ? { outcome: "renewed", validity: validFrom(reply.sent, ttlMs) }
        : { outcome: "lost", reason: lossReasonOf(reply.value) };
    } catch (error) {
      return { outcome: "unknown", error };
    }
  }

  async verify(key: string, token: string, fencingToken?: bigint): Promise<VerifyResult> {
    const reply = await this.#perform(key, ["verify", token]);
    const [status, remainingMs, first] = reply.value as unknown[];
    if (Number(status) !== 1) {
      return { outcome: "lost", reason: lossReasonOf(status) };
    } else if (fencingToken !== undefined && Number(first) > fencingToken) {
      return { outcome: "lost", reason: "expired" };
    }
    return { outcome: "held", validity: validFrom(reply.sent, Math.max(0, Number(remainingMs))) };
  }

  release(key: string, token: string, until: number): Promise<boolean> {
    const isOwn = clientIdOf(token) === this.#clientId;
    const keys = this.#keySpace.keysOf(key);
    return this.releaseQueue.release({ key, keys, token, queueArgs: "", until, isOwn });
  }

  downgrade(key: string, token: string, until: number): Promise<boolean> {
    return this.releaseQueue.downgrade({
      key,
      keys: this.#keySpace.keysOf(key),
      token,
      queueArgs: "",
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
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async inspect(key: string): Promise<LockState> {
    return toLockState(this.serverFor(this.#keySpace.keysOf(key)), key, await this.#snapshot(key));
  }

  async list(query: ListQuery): Promise<{ locks: LockState[]; cursor: string | null }> {
    const locks: LockState[] = [];
    const end = this.clock.now() + pageBudgetMs;
    let { cursor } = query;
    do {
      query.signal?.throwIfAborted();
      const page = await this.#directory.scan(cursor, this.#keySpace.patternOf(query.prefix), query.limit);
      const keys = page.locks.map((lock) => this.#keySpace.keyOf(lock)).filter((key) => key !== undefined);
      const states = await Promise.all(keys.map((key) => this.inspect(key)));
      locks.push(...states.filter(exists));
      ({ cursor } = page);
    } while (cursor !== null && locks.length < query.limit && this.clock.now() < end);
    return { locks, cursor };
  }

  watch(target: string | { readonly prefix: string }, signal: AbortSignal): AsyncIterable<LockEvent> {
    return this.#watches.watch(target, signal);
  }

  async breakGrant(key: string, fencingToken: bigint, reason: string): Promise<boolean> {
    const server = this.serverFor(this.#keySpace.keysOf(key));
    if (!server.isTimeKnown) {
      await server.handshake(); // only then is the kind of the holder's channel known
    }
    const reply = await this.#perform(key, [
      "breakGrant",
      fencingToken.toString(),
      server.breakChannel,
      reason,
    ]);
    const [isBroken, more] = reply.value as unknown[];
    if (Number(more) === 1) {
      this.#grantNext(key);
    }
    return Number(isBroken) === 1;
  }

  async checkFence(key: string, fencingToken: bigint): Promise<FenceState> {
    return compareFence(await this.#snapshot(key), fencingToken);
  }

  nodes(): Promise<NodeState[]> {
    return this.#directory.states();
  }

  async close(): Promise<void> {
    for (const request of Array.from(this.#requests.items)) {
      request.close();
    }
    this.timers.clear();
    this.latches.close();
    await this.releaseQueue.idle(); // bounded by the command budget
    this.releaseQueue.close();
    this.#directory.close();
  }

  // What requests need.

  serverFor(keys: LockKeys): RedisServer {
    return this.#directory.serverFor(keys);
  }

  tokenFor({ lockMode, ticket }: AcquireRequest, server: RedisServer): string {
    const position = ticket ?? server.serverClock.ticket();
    return createToken({ clientId: this.#clientId, lockMode, ticket: position }, this.random);
  }

  queued(request: ServerAcquire): void {
    this.#queuedRequests.set(request.token, request);
  }

  settled(request: ServerAcquire): void {
    this.#requests.delete(request);
    this.#queuedRequests.delete(request.token);
    this.timers.cancel(request);
  }

  async holderOf(key: string): Promise<Holder | undefined> {
    return (await this.inspect(key)).holders[0];
  }

  // What the server pushes.

  granted(grant: PushedGrant): void {
    const request = this.#requestOf(grant.token);
    const key = this.#keySpace.keyOf(grant.lock);
    if (request) {
      request.granted(grant);
    } else if (key !== undefined) {
      const keys = this.#keySpace.keysOf(key);
      const server = this.serverFor(keys);
      if (server.hasOwnChannel && !isExpired(grant, server)) {
        const until = this.clock.now() + grant.ttlMs;
        this.releaseQueue.cleanUpUnused({ key, keys, token: grant.token, queueArgs: "", until });
      }
    }
  }

  retry(token: string): void {
    const request = this.#requestOf(token);
    if (request?.waits === true) {
      request.trySend();
    }
  }

  latchOpened(lock: string, createdAt: string): void {
    this.latches.opened(lock, createdAt);
  }

  ended(token: string, reason: LossReason, cause: unknown): void {
    for (const listener of this.#listeners) {
      listener.lost(token, reason, cause);
    }
  }

  /** What is held, or waits, has the same token in the clone: only with new tokens are the two apart. */
  cloned(): void {
    this.random.refresh?.();
    this.#clientId = this.random.id();
    this.#directory.rename(this.#clientId);
    for (const listener of this.#listeners) {
      listener.lost(null, "suspended", clonedError());
    }
    for (const request of Array.from(this.#requests.items)) {
      request.cloned();
    }
  }

  notificationStatusChanged(status: NotificationStatus, server: RedisServer): void {
    if (status === "verified" && server.hasBreakSubscription) {
      for (const listener of this.#listeners) {
        listener.notificationsInterrupted();
      }
    }
    for (const request of Array.from(this.#requests.items)) {
      if (request.wasSent && request.waits && request.server === server) {
        request.trySend();
      }
    }
    this.latches.notificationStatusChanged(server);
  }

  /** Extensions go first, then releases, then waits. */
  recovered(server: RedisServer): void {
    for (const listener of this.#listeners) {
      listener.engineRecovered();
    }
    this.releaseQueue.recovered(server);
    for (const request of Array.from(this.#requests.items)) {
      if (request.server === server) {
        request.recovered();
      }
    }
    this.latches.recovered(server);
  }

  /** A message may overtake the answer that says that it is queued. */
  #requestOf(token: string): ServerAcquire | undefined {
    return this.#queuedRequests.get(token) ?? this.#requests.items.find((request) => request.token === token);
  }

  /** Dead waiters are left before the living: a release of what nobody holds passes over them, as often as it takes. */
  #grantNext(key: string): void {
    const until = this.clock.now() + this.commandTimeoutMs;
    this.releaseQueue.cleanUp({ key, keys: this.#keySpace.keysOf(key), token: "-", queueArgs: "", until });
  }

  begin(request: ServerAcquire): ServerAcquire {
    this.#requests.add(request);
    request.begin();
    return request;
  }

  async #snapshot(key: string): Promise<LockSnapshot> {
    return parseSnapshot((await this.#perform(key, ["inspect"])).value);
  }

  /** One operation, once. Rejects with an `EngineError` at the latest after the command budget. */
  async #perform(key: string, args: readonly string[]): Promise<Reply> {
    const keys = this.#keySpace.keysOf(key);
    const server = this.serverFor(keys);
    if (!server.isTimeKnown) {
      await server.handshake();
    }
    return new Promise<Reply>((resolve, reject) => {
      server.perform({
        keys,
        args,
        answered: (reply) => {
          const value = reply.value as unknown[] | number;
          if (Array.isArray(value) && value[0] === "error") {
            reject(engineError(serverRefusal(String(value[1])), key, "none"));
          } else {
            resolve(reply);
          }
        },
        failed: (error) => reject(engineError(error, key, outcomeOf(error))),
      });
    });
  }
}

/**
 * Whether a grant by message is over, unless its token's owner has extended it: a lease that was transferred is no longer known here,
 * and is not released for a message that comes late. By the estimate of the server's clock; without one the grant is left to expire.
 */
function isExpired({ serverMicros, ttlMs }: PushedGrant, { serverClock }: RedisServer): boolean {
  return !serverClock.isKnown || serverClock.micros() - serverMicros >= ttlMs * 1000;
}
