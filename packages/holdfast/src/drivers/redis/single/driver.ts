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
  Together,
  Verified,
} from "../../../driver.ts";
import type { LossReason } from "../../../errors.ts";
import type { Random } from "../../../runtime/random.ts";
import {
  isThere,
  type FenceState,
  type Holder,
  type LockEvent,
  type LockState,
  type NodeState,
} from "../../../lock-state.ts";
import { Pool } from "../../../runtime/unordered-set.ts";
import { TimerQueue } from "../../../runtime/timer-queue.ts";
import { engineEnd, validFrom } from "../../../validity.ts";
import { pageBudgetMs, type Directory } from "./server-directory.ts";
import { clonedError, engineError, outcomeOf, refusalBy } from "../server/errors.ts";
import { describe, judgeFence, readFacts, type Facts } from "../server/lock-snapshot.ts";
import { KeySpace, type LockKeys } from "../protocol/keys.ts";
import { RedisLatches } from "./latches.ts";
import type { PushedGrant } from "../protocol/messages.ts";
import type { Node, NodeListener } from "../server/server.ts";
import type { Reply } from "../protocol/operation.ts";
import type { RedisSettings } from "../options.ts";
import { Releaser } from "../server/release-queue.ts";
import type { Waking } from "../server/server-call.ts";
import type { RequestHost } from "./request-host.ts";
import { Request } from "./request.ts";
import type { Hearing } from "../server/subscriber.ts";
import { takeTogether } from "./multi-key.ts";
import { TokenTable } from "../../../runtime/token-map.ts";
import { attemptToken, clientOf, makeToken } from "../protocol/token.ts";
import { Watches } from "../polling-watch.ts";
import { encodeWords, reasonOf } from "../protocol/metadata.ts";

/** Makes the directory of a driver instance. */
export type OpenDirectory = (clientId: string, listener: NodeListener) => Directory;

/** Locks on what is one Redis to its users: a server, or a cluster, as its directory knows. */
export class RedisDriver implements Driver, RequestHost, NodeListener {
  readonly clock: Clock;
  readonly random: Random;
  readonly capabilities: Capabilities;
  readonly commandTimeoutMs: number;
  readonly claimMs: number;
  readonly agenda: TimerQueue<Waking>;
  readonly releaser: Releaser;
  readonly latches: RedisLatches;
  readonly #directory: Directory;
  readonly #keySpace: KeySpace;
  #clientId: string;
  readonly #requests = new Pool<Request>();
  /** Those that wait in a server's queue, by token: of many, messages come for these. */
  readonly #queued = new TokenTable<Request>();
  readonly #listeners = new Set<DriverListener>();
  readonly #watches = new Watches(this);

  constructor(settings: RedisSettings, keyPrefix: string, open: OpenDirectory) {
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
    this.#directory = open(this.#clientId, this);
    this.releaser = new Releaser(
      (keys) => this.nodeOf(keys),
      clock,
      random,
      commandTimeoutMs,
      (grant, sent) => this.#requestOf(grant.token)?.grantedByRelease(grant, sent),
    );
    this.agenda = new TimerQueue(clock, (request) => request.wake(), true);
    this.latches = new RedisLatches({
      nodeOf: (keys) => this.nodeOf(keys),
      clock,
      random,
      commandTimeoutMs,
      keysOf: (key) => this.#keySpace.keysOf(key),
      tokenOf: (key, attemptId) => attemptToken({ key, attemptId, clientId: this.#clientId }, random),
    });
  }

  introduce(owner: string): void {
    const since = String(Math.round(this.clock.wall()));
    this.#directory.introduce([
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
    const node = this.nodeOf(this.#keySpace.keysOf(key));
    return node.time.isCertain ? node.time.ticket() : undefined;
  }

  acquire(request: AcquireRequest): Pending {
    return this.begin(new Request(this, request, this.#keySpace.keysOf(request.key)));
  }

  areTogether(keys: readonly string[]): boolean {
    return this.#directory.areTogether(keys.map((key) => this.#keySpace.keysOf(key)));
  }

  async acquireTogether(requests: readonly AcquireRequest[]): Promise<Together> {
    const node = this.nodeOf(this.#keySpace.keysOf(requests[0]?.key ?? ""));
    if (!node.isKnown) {
      await node.meet();
    }
    const parts = requests.map((request) => {
      const { key, share, ticket = node.time.ticket() } = request;
      const token = makeToken({ clientId: this.#clientId, share, ticket }, this.random);
      return { request, keys: this.#keySpace.keysOf(key), token };
    });
    const { clock, releaser, commandTimeoutMs } = this;
    const clientId = this.#clientId;
    const taken = await takeTogether(parts, { node, clock, releaser, commandTimeoutMs });
    if (clientId !== this.#clientId && taken.outcome === "granted") {
      throw clonedError();
    }
    return taken;
  }

  requeue(given: Grant, request: AcquireRequest): Requeued {
    const pending = this.begin(
      new Request(this, request, this.#keySpace.keysOf(request.key), { isPastBound: true }),
    );
    const released = this.release(given.key, given.token, engineEnd(given.validity));
    return {
      result: pending.result,
      released,
      cancel: (reason) => pending.cancel(reason),
    };
  }

  async extend({ key, token, fencingToken, ttlMs, words }: ExtendRequest): Promise<Extension> {
    this.releaser.inUse.prolong(token, ttlMs);
    try {
      const asked = ["extend", token, String(ttlMs), encodeWords(words), fencingToken.toString()];
      const reply = await this.#ask(key, asked);
      return Number(reply.value) === 1
        ? { outcome: "renewed", validity: validFrom(reply.sent, ttlMs) }
        : { outcome: "lost", reason: reasonOf(reply.value) };
    } catch (error) {
      return { outcome: "unknown", error };
    }
  }

  async verify(key: string, token: string, fencingToken?: bigint): Promise<Verified> {
    const reply = await this.#ask(key, ["verify", token]);
    const [status, remainingMs, first] = reply.value as unknown[];
    if (Number(status) !== 1) {
      return { outcome: "lost", reason: reasonOf(status) };
    } else if (fencingToken !== undefined && Number(first) > fencingToken) {
      return { outcome: "lost", reason: "expired" };
    }
    return { outcome: "held", validity: validFrom(reply.sent, Math.max(0, Number(remainingMs))) };
  }

  release(key: string, token: string, until: number): Promise<boolean> {
    const isOwn = clientOf(token) === this.#clientId;
    const keys = this.#keySpace.keysOf(key);
    return this.releaser.release({ key, keys, token, terms: "", until, isOwn });
  }

  downgrade(key: string, token: string, until: number): Promise<boolean> {
    return this.releaser.downgrade({ key, keys: this.#keySpace.keysOf(key), token, terms: "", until });
  }

  async setLimit(key: string, limit: number): Promise<void> {
    const { value } = await this.#ask(key, ["setLimit", String(limit)]);
    if (Number((value as unknown[])[1]) === 1) {
      this.#serveWaiters(key);
    }
  }

  listen(listener: DriverListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async inspect(key: string): Promise<LockState> {
    return describe(this.nodeOf(this.#keySpace.keysOf(key)), key, await this.#facts(key));
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
      locks.push(...states.filter(isThere));
      ({ cursor } = page);
    } while (cursor !== null && locks.length < query.limit && this.clock.now() < end);
    return { locks, cursor };
  }

  watch(target: string | { readonly prefix: string }, signal: AbortSignal): AsyncIterable<LockEvent> {
    return this.#watches.watch(target, signal);
  }

  async breakGrant(key: string, fencingToken: bigint, reason: string): Promise<boolean> {
    const node = this.nodeOf(this.#keySpace.keysOf(key));
    if (!node.isKnown) {
      await node.meet(); // only then is the kind of the holder's channel known
    }
    const reply = await this.#ask(key, ["breakGrant", fencingToken.toString(), node.forceKind, reason]);
    const [isBroken, more] = reply.value as unknown[];
    if (Number(more) === 1) {
      this.#serveWaiters(key);
    }
    return Number(isBroken) === 1;
  }

  async checkFence(key: string, fencingToken: bigint): Promise<FenceState> {
    return judgeFence(await this.#facts(key), fencingToken);
  }

  nodes(): Promise<NodeState[]> {
    return this.#directory.states();
  }

  async close(): Promise<void> {
    for (const request of Array.from(this.#requests.items)) {
      request.close();
    }
    this.agenda.clear();
    this.latches.close();
    await this.releaser.idle(); // bounded by the command budget
    this.releaser.close();
    this.#directory.close();
  }

  // What requests need.

  nodeOf(keys: LockKeys): Node {
    return this.#directory.nodeOf(keys);
  }

  tokenFor({ share, ticket }: AcquireRequest, node: Node): string {
    const place = ticket ?? node.time.ticket();
    return makeToken({ clientId: this.#clientId, share, ticket: place }, this.random);
  }

  queued(request: Request): void {
    this.#queued.set(request.token, request);
  }

  settled(request: Request): void {
    this.#requests.delete(request);
    this.#queued.delete(request.token);
    this.agenda.cancel(request);
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
      const node = this.nodeOf(keys);
      if (node.hearsAlone && !isExpired(grant, node)) {
        const until = this.clock.now() + grant.ttlMs;
        this.releaser.toldLate({ key, keys, token: grant.token, terms: "", until });
      }
    }
  }

  askAgain(token: string): void {
    const request = this.#requestOf(token);
    if (request?.waits === true) {
      request.attempt();
    }
  }

  opened(lock: string, born: string): void {
    this.latches.opened(lock, born);
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

  hearingChanged(hearing: Hearing, node: Node): void {
    if (hearing === "proved" && node.hearsForce) {
      for (const listener of this.#listeners) {
        listener.mayHaveMissed();
      }
    }
    for (const request of Array.from(this.#requests.items)) {
      if (request.wasSent && request.waits && request.node === node) {
        request.attempt();
      }
    }
    this.latches.hearingChanged(node);
  }

  /** Extensions go first, then releases, then waits. */
  revived(node: Node): void {
    for (const listener of this.#listeners) {
      listener.answersAgain();
    }
    this.releaser.revived(node);
    for (const request of Array.from(this.#requests.items)) {
      if (request.node === node) {
        request.revived();
      }
    }
    this.latches.revived(node);
  }

  /** A message may overtake the answer that says that it is queued. */
  #requestOf(token: string): Request | undefined {
    return this.#queued.get(token) ?? this.#requests.items.find((request) => request.token === token);
  }

  /** Dead waiters are left before the living: a release of what nobody holds passes over them, as often as it takes. */
  #serveWaiters(key: string): void {
    const until = this.clock.now() + this.commandTimeoutMs;
    this.releaser.takeBack({ key, keys: this.#keySpace.keysOf(key), token: "-", terms: "", until });
  }

  begin(request: Request): Request {
    this.#requests.add(request);
    request.begin();
    return request;
  }

  async #facts(key: string): Promise<Facts> {
    return readFacts((await this.#ask(key, ["inspect"])).value);
  }

  /** One operation, once. Rejects with an `EngineError` at the latest after the command budget. */
  async #ask(key: string, args: readonly string[]): Promise<Reply> {
    const keys = this.#keySpace.keysOf(key);
    const node = this.nodeOf(keys);
    if (!node.isKnown) {
      await node.meet();
    }
    return new Promise<Reply>((answered, refused) => {
      node.perform({
        keys,
        args,
        answered: (reply) => {
          const value = reply.value as unknown[] | number;
          if (Array.isArray(value) && value[0] === "error") {
            refused(engineError(refusalBy(String(value[1])), key, "none"));
          } else {
            answered(reply);
          }
        },
        failed: (error) => refused(engineError(error, key, outcomeOf(error))),
      });
    });
  }
}

/**
 * Whether a grant by message is over, unless its token's owner has extended it: a lease that was transferred is no longer known here,
 * and is not released for a message that comes late. By the estimate of the server's clock; without one the grant is left to expire.
 */
function isExpired({ serverMicros, ttlMs }: PushedGrant, { time }: Node): boolean {
  return !time.isKnown || time.micros() - serverMicros >= ttlMs * 1000;
}
