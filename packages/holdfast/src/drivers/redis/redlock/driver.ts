import { hostname } from "node:os";

import type { Clock } from "../../../runtime/clock.ts";
import type {
  AcquireRequest,
  Capabilities,
  Driver,
  DriverListener,
  ExtendRequest,
  Extension,
  Grant,
  ListQuery,
  Pending,
  Requeued,
  Verified,
} from "../../../driver.ts";
import { LockError, type LossReason } from "../../../errors.ts";
import { refusal } from "../../../options.ts";
import type { Random } from "../../../runtime/random.ts";
import type { FenceState, Holder, LockEvent, LockState, NodeState } from "../../../lock-state.ts";
import { Pool } from "../../../runtime/unordered-set.ts";
import { TimerQueue } from "../../../runtime/timer-queue.ts";
import { engineEnd } from "../../../validity.ts";
import { connectionOfNode, type RedisClient } from "../clients/detect.ts";
import type { Connection } from "../clients/connection.ts";
import { Electorate } from "./node-set.ts";
import { clonedError } from "../server/errors.ts";
import { KeySpace, type LockKeys } from "../protocol/keys.ts";
import type { NodeListener } from "../server/server.ts";
import { resolveRedlock, type RedlockOptions, type RedlockSettings } from "../options.ts";
import { Census } from "./inspect/operator-api.ts";
import type { QuorumHold } from "./held-grant.ts";
import { Holdings } from "./grant-registry.ts";
import { QuorumRelease } from "./release.ts";
import { QuorumRequest } from "./request.ts";
import type { QuorumHost } from "./request-host.ts";
import type { Hearing } from "../server/subscriber.ts";
import { Voter } from "./quorum-node.ts";
import { makeToken } from "../protocol/token.ts";
import { Watches } from "../polling-watch.ts";
import { encodeWords } from "../protocol/metadata.ts";

/**
 * Locks on a majority of independent Redis servers: Redlock, with a queue on every node. Survives any minority of nodes; grants in
 * order of arrival, hands over by message, and gives fencing tokens. Give one client for each node, to masters that share nothing;
 * three or five are usual. The clients stay the caller's.
 */
export function redlock(clients: readonly RedisClient[], options?: RedlockOptions): Driver {
  if (!Array.isArray(clients) || clients.length === 0 || clients.length > mostNodes) {
    throw refusal("clients", `an array of 1 to ${mostNodes} clients, one for each node`, clients);
  }
  if (new Set(clients).size < clients.length) {
    throw new TypeError("Expected `clients` to be different clients: the same one twice would vote twice");
  }
  const settings = resolveRedlock(options);
  if (settings.isGuardOff) {
    process.emitWarning("restartGuard is off: a restarted node can give two holders. It is for tests", {
      code: "HOLDFAST_RESTART_GUARD_OFF",
    });
  }
  return new RedlockDriver(settings, clients);
}

const mostNodes = 15;

class RedlockDriver implements Driver, QuorumHost {
  readonly clock: Clock;
  readonly random: Random;
  readonly capabilities: Capabilities;
  readonly electorate: Electorate;
  readonly agenda: TimerQueue<QuorumRequest>;
  readonly commandTimeoutMs: number;
  readonly nodeTimeoutMs: number;
  readonly claimMs: number;
  readonly driftFactor: number;
  readonly holdings: Holdings;
  readonly #keySpace: KeySpace;
  #clientId: string;
  readonly #requests = new Pool<QuorumRequest>();
  readonly #census: Census;
  readonly #listeners = new Set<DriverListener>();
  readonly #watches = new Watches(this);

  constructor(settings: RedlockSettings, clients: readonly RedisClient[]) {
    const { clock, random, claimMs, prefix, maxTtlMs } = settings;
    this.clock = clock;
    this.random = random;
    this.commandTimeoutMs = settings.commandTimeoutMs;
    this.nodeTimeoutMs = settings.nodeTimeoutMs;
    this.claimMs = claimMs;
    this.driftFactor = settings.driftFactor;
    this.capabilities = {
      kinds: ["mutex", "read-write"],
      guarantee: "quorum",
      waiting: "notify",
      requeue: true,
      fencingBlocks: true,
      maxTtlMs,
      claimMs,
    };
    this.#clientId = random.id();
    const connections = clients.map(connectionOfNode);
    this.#keySpace = new KeySpace(commonPrefix(connections), prefix, true);
    const voters = connections.map(
      (connection, index) =>
        new Voter({
          ...settings,
          connection,
          clientId: this.#clientId,
          index,
          listener: this.#listenerOf(index),
          examined: () => {
            for (const request of Array.from(this.#requests.items)) {
              request.reconsider();
            }
          },
          answered: (isNewRun) => this.electorate.answered(isNewRun),
        }),
    );
    this.electorate = new Electorate(clock, voters, settings);
    this.holdings = new Holdings({
      electorate: this.electorate,
      clock,
      driftFactor: settings.driftFactor,
      maxTtlMs,
      keySpace: this.#keySpace,
    });
    this.#census = new Census(this.electorate, this.#keySpace, this.commandTimeoutMs);
    this.agenda = new TimerQueue(clock, (request) => request.wake(), true);
  }

  introduce(owner: string): void {
    const since = String(Math.round(this.clock.wall()));
    for (const { node } of this.electorate.voters) {
      node.introduce(["owner", owner, "host", hostname(), "pid", String(process.pid), "since", since]);
    }
  }

  checkKey(key: string): void {
    this.#keySpace.keysOf(key);
  }

  ticket(): number | undefined {
    return this.electorate.isReady ? this.electorate.ticket() : undefined;
  }

  acquire(request: AcquireRequest): Pending {
    return this.#begin(new QuorumRequest(this, request, this.#keysOf(request.key)));
  }

  requeue(given: Grant, request: AcquireRequest): Requeued {
    const pending = this.#begin(new QuorumRequest(this, request, this.#keysOf(request.key), true));
    return {
      result: pending.result,
      released: this.release(given.key, given.token, engineEnd(given.validity)),
      cancel: (reason) => pending.cancel(reason),
    };
  }

  async extend({ key, token, fencingToken, ttlMs, words }: ExtendRequest): Promise<Extension> {
    const hold = this.holdings.holdOf(key, token);
    this.holdings.prolong(hold, ttlMs);
    const refusal = hold.isKnown ? undefined : await this.#learn(hold, fencingToken);
    return refusal ?? hold.extend(ttlMs, encodeWords(words), fencingToken);
  }

  /** Which nodes have a grant of another process: only those that have it before they are asked to prolong it count. */
  async #learn(
    { key, token }: QuorumHold,
    fencingToken: bigint,
  ): Promise<Exclude<Extension, { outcome: "renewed" }> | undefined> {
    try {
      const verified = await this.verify(key, token, fencingToken);
      return verified.outcome === "lost" ? verified : undefined;
    } catch (error) {
      return { outcome: "unknown", error };
    }
  }

  verify(key: string, token: string, fencingToken?: bigint): Promise<Verified> {
    return this.#census.ready(key, () => this.holdings.holdOf(key, token).verify(fencingToken));
  }

  release(key: string, token: string, until: number): Promise<boolean> {
    return this.holdings.release(key, token, until);
  }

  downgrade(key: string, token: string, until: number): Promise<boolean> {
    const hold = this.holdings.holdOf(key, token);
    hold.isDowngraded = true;
    const release = new QuorumRelease(this.electorate, hold);
    release.begin(until, undefined, "downgrade");
    return release.result;
  }

  async setLimit(key: string): Promise<void> {
    throw new LockError("A quorum has no semaphores", { code: "unsupported", key });
  }

  listen(listener: DriverListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  inspect(key: string): Promise<LockState> {
    return this.#census.inspect(key);
  }

  list(query: ListQuery): Promise<{ locks: LockState[]; cursor: string | null }> {
    return this.#census.list(query);
  }

  watch(target: string | { readonly prefix: string }, signal: AbortSignal): AsyncIterable<LockEvent> {
    return this.#watches.watch(target, signal);
  }

  breakGrant(key: string, fencingToken: bigint, reason: string): Promise<boolean> {
    return this.#census.breakGrant(key, fencingToken, reason);
  }

  checkFence(key: string, fencingToken: bigint): Promise<FenceState> {
    return this.#census.checkFence(key, fencingToken);
  }

  nodes(): Promise<NodeState[]> {
    return this.#census.nodes();
  }

  async close(): Promise<void> {
    for (const request of Array.from(this.#requests.items)) {
      request.close();
    }
    this.agenda.clear();
    const releases = this.holdings.close();
    const leftovers = this.electorate.voters.map(({ releaser }) => releaser.idle());
    await Promise.all([...releases, ...leftovers]); // bounded by the command budget
    for (const voter of this.electorate.voters) {
      voter.close();
    }
  }

  // What requests need.

  tokenFor({ share }: AcquireRequest, ticket: number): string {
    return makeToken({ clientId: this.#clientId, share, ticket }, this.random);
  }

  settled(request: QuorumRequest): void {
    this.#requests.delete(request);
  }

  async holderOf(key: string): Promise<Holder | undefined> {
    return (await this.inspect(key)).holders[0];
  }

  // What the nodes push.

  #listenerOf(index: number): NodeListener {
    return {
      granted: (grant) => this.holdings.granted(index, grant),
      askAgain: (token) => this.holdings.askAgain(index, token),
      cloned: () => this.#cloned(),
      inquired: (token, number) => this.holdings.inquired(index, token, number),
      ended: (token, reason, cause) => this.#ended(index, token, reason, cause),
      revived: () => this.#revived(index),
      hearingChanged: (hearing) => this.#hearingChanged(index, hearing),
    };
  }

  #ended(index: number, token: string, reason: LossReason, cause: unknown): void {
    const lost = this.holdings.ended(index, token, reason);
    if (lost) {
      for (const listener of this.#listeners) {
        listener.lost(token, reason, cause);
      }
      this.holdings.takeBackLost(lost);
    }
  }

  /** What is held, or waits, has the same token in the clone: only with new tokens are the two apart. */
  #cloned(): void {
    this.random.refresh?.();
    this.#clientId = this.random.id();
    for (const { node } of this.electorate.voters) {
      node.rename(this.#clientId);
    }
    for (const listener of this.#listeners) {
      listener.lost(null, "suspended", clonedError());
    }
    for (const request of Array.from(this.#requests.items)) {
      request.cloned();
    }
  }

  #hearingChanged(index: number, hearing: Hearing): void {
    if (hearing === "proved") {
      for (const listener of this.#listeners) {
        listener.mayHaveMissed();
      }
    }
    this.#askAgain(index);
  }

  /** Extensions go first, then releases, then waits. */
  #revived(index: number): void {
    for (const listener of this.#listeners) {
      listener.answersAgain();
    }
    const { node, releaser } = this.electorate.voters[index] as Voter;
    releaser.revived(node);
    this.#askAgain(index);
  }

  #askAgain(index: number): void {
    for (const request of Array.from(this.#requests.items)) {
      request.askNode(index);
    }
  }

  #begin(request: QuorumRequest): QuorumRequest {
    this.#requests.add(request);
    request.begin();
    return request;
  }

  #keysOf(key: string): LockKeys {
    return this.#keySpace.keysOf(key);
  }
}

/** Else the nodes would lock different keys. */
function commonPrefix(connections: readonly Connection[]): string {
  const [first = "", ...others] = connections.map(({ keyPrefix }) => keyPrefix);
  if (others.some((other) => other !== first)) {
    throw new TypeError("Expected `clients` to have the same keyPrefix: each node has to lock the same key");
  }
  return first;
}
