import type { AcquireRequest, DriverListener } from "../../../driver.ts";
import type { LossReason } from "../../../errors.ts";
import type { Holder } from "../../../lock-state.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { Random } from "../../../runtime/random.ts";
import { TimerQueue } from "../../../runtime/timer-queue.ts";
import { TokenMap } from "../../../runtime/token-map.ts";
import { UnorderedSet } from "../../../runtime/unordered-set.ts";
import type { RedisSettings } from "../options.ts";
import { type DirectoryLink, RedisProcessDirectory } from "../processes/directory.ts";
import { KeySpace, type LockKeys } from "../protocol/keys.ts";
import type { ProcessAnswer, ProcessQuestion, PushedGrant } from "../protocol/messages.ts";
import { attemptToken, createToken } from "../protocol/token.ts";
import { clonedError } from "../server/errors.ts";
import { ReleaseQueue } from "../server/releases.ts";
import type { RedisServer, ServerListener } from "../server/server.ts";
import type { Wakeable } from "../server/server-call.ts";
import type { NotificationStatus } from "../server/subscriber.ts";
import { LockInspector } from "./inspect.ts";
import { RedisLatches } from "./latches.ts";
import type { RequestHost, ServerAcquire } from "./server-acquire.ts";
import type { ServerDirectory } from "./server-directory.ts";

/** Makes the directory of a driver instance. */
export type CreateDirectory = (clientId: string, listener: ServerListener) => ServerDirectory;

/** Registers the open requests of one driver under its client ID, and gives each notification to its request. */
export class RequestRegistry implements RequestHost<ServerAcquire>, ServerListener {
  readonly clock: Clock;
  readonly random: Random;
  readonly commandTimeoutMs: number;
  readonly claimMs: number;
  readonly timers: TimerQueue<Wakeable>;
  readonly releaseQueue: ReleaseQueue;
  readonly latches: RedisLatches;
  readonly keySpace: KeySpace;
  readonly servers: ServerDirectory;
  readonly inspector: LockInspector;
  readonly processes: RedisProcessDirectory;
  clientId: string;
  readonly #link: () => DirectoryLink;
  readonly #requests = new UnorderedSet<ServerAcquire>();
  /** The requests with an entry in a server's queue, by token. Most notifications are for these requests. */
  readonly #queuedRequests = new TokenMap<ServerAcquire>();
  /** The requests with a grant of which the server may still execute a copy, by token. They are kept until the release, or that long. */
  readonly #grantedEarly = new TokenMap<ServerAcquire>();
  readonly #kept: TimerQueue<ServerAcquire>;
  readonly #listeners = new Set<DriverListener>();

  constructor(settings: RedisSettings, keyPrefix: string, createDirectory: CreateDirectory) {
    const { clock, random, commandTimeoutMs, claimMs, prefix } = settings;
    this.clock = clock;
    this.random = random;
    this.commandTimeoutMs = commandTimeoutMs;
    this.claimMs = claimMs;
    this.keySpace = new KeySpace(keyPrefix, prefix);
    this.clientId = random.id();
    this.servers = createDirectory(this.clientId, this);
    this.inspector = new LockInspector(this);
    this.releaseQueue = new ReleaseQueue(
      (keys) => this.serverFor(keys),
      clock,
      random,
      commandTimeoutMs,
      (grant, sent) => this.#requestOf(grant.token)?.grantedByRelease(grant, sent),
    );
    this.timers = new TimerQueue(clock, (request) => request.timerDue(), true);
    this.#kept = new TimerQueue(clock, (request) => this.#grantedEarly.delete(request.token));
    const link = (): DirectoryLink => this.servers.link(this.keySpace.directoryKey);
    this.#link = link;
    this.processes = new RedisProcessDirectory({
      clock,
      random,
      links: () => [link()],
      clientId: () => this.clientId,
    });
    this.latches = new RedisLatches({
      serverFor: (keys) => this.serverFor(keys),
      clock,
      random,
      commandTimeoutMs,
      keysOf: (key) => this.keysOf(key),
      tokenOf: (key, attemptId) => attemptToken({ key, attemptId, clientId: this.clientId }, random),
    });
  }

  listen(listener: DriverListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Cancels the open requests and latch calls. */
  cancelAll(): void {
    for (const request of Array.from(this.#requests.items)) {
      request.close();
    }
    this.timers.clear();
    this.#kept.clear();
    this.latches.close();
  }

  // The host of the requests.

  begin(request: ServerAcquire): ServerAcquire {
    this.processes.used();
    this.#requests.add(request);
    request.begin();
    return request;
  }

  keysOf(key: string): LockKeys {
    return this.keySpace.keysOf(key);
  }

  serverFor(keys: LockKeys): RedisServer {
    return this.servers.serverFor(keys);
  }

  tokenFor({ lockMode, ticket: requested }: AcquireRequest, server: RedisServer): string {
    const ticket = requested ?? server.serverClock.ticket();
    return createToken({ clientId: this.clientId, lockMode, ticket }, this.random);
  }

  queued(request: ServerAcquire): void {
    this.#queuedRequests.set(request.token, request);
  }

  settled(request: ServerAcquire): void {
    this.#requests.delete(request);
    this.#queuedRequests.delete(request.token);
    this.timers.cancel(request);
  }

  grantedEarly(request: ServerAcquire): void {
    this.#grantedEarly.set(request.token, request);
    this.#kept.schedule(request, this.clock.now() + request.pendingMs);
  }

  /** The release of a grant begins. @returns the request of the grant, if the server may still execute a copy of it */
  releasing(token: string): ServerAcquire | undefined {
    const request = this.#grantedEarly.get(token);
    if (request) {
      this.#grantedEarly.delete(token);
      this.#kept.cancel(request);
    }
    return request;
  }

  async holderOf(key: string): Promise<Holder | undefined> {
    return (await this.inspector.inspect(key)).holders[0];
  }

  // Notifications of the servers.

  /**
   * A grant for an unknown token is ignored, because another process may have adopted its lease. The grant of an abandoned request is
   * a claim, which expires after `claimMs`.
   */
  granted(grant: PushedGrant): void {
    this.#requestOf(grant.token)?.granted(grant);
  }

  retry(token: string): void {
    const request = this.#requestOf(token);
    if (request?.waits === true) {
      request.sendIfOpen();
    }
  }

  processAsked(question: ProcessQuestion): void {
    this.processes.asked(question, this.#link());
  }

  processAnswered(answer: ProcessAnswer): void {
    this.processes.answered(answer);
  }

  latchOpened(lock: string, createdAt: string): void {
    this.latches.opened(lock, createdAt);
  }

  ended(token: string, reason: LossReason, cause: unknown): void {
    for (const listener of this.#listeners) {
      listener.lost(token, reason, cause);
    }
  }

  /** Takes a new client ID. The clone has the same tokens for every lease and every waiter, so only new tokens distinguish the two. */
  cloned(): void {
    this.random.refresh?.();
    this.clientId = this.random.id();
    this.servers.rename(this.clientId);
    for (const listener of this.#listeners) {
      listener.lost(null, "suspended", clonedError());
    }
    for (const request of Array.from(this.#requests.items)) {
      request.cloned();
    }
  }

  notificationStatusChanged(status: NotificationStatus, server: RedisServer): void {
    if (status === "verified" && server.hasBreakSubscription) {
      this.processes.verified();
      for (const listener of this.#listeners) {
        listener.notificationsInterrupted();
      }
    }
    for (const request of Array.from(this.#requests.items)) {
      if (request.wasSent && request.waits && request.server === server) {
        request.sendIfOpen();
      }
    }
    this.latches.notificationStatusChanged(server);
  }

  /** Extensions are repeated first, then releases, then waiting requests. */
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

  /** A notification may arrive before the reply that reports the queue entry, so all requests are searched. */
  #requestOf(token: string): ServerAcquire | undefined {
    return this.#queuedRequests.get(token) ?? this.#requests.items.find((request) => request.token === token);
  }
}
