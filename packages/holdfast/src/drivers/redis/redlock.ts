import { hostname } from "node:os";

import type { Clock } from "../../clock.ts";
import type {
  AcquireRequest,
  Capabilities,
  Driver,
  DriverListener,
  ExtendRequest,
  Extension,
  Grant,
  Pending,
  Requeued,
  Verified,
} from "../../driver.ts";
import { LockError, type LossReason } from "../../errors.ts";
import { refusal } from "../../options.ts";
import type { Random } from "../../random.ts";
import type { Holder, LockEvent, LockState, NodeState } from "../../state.ts";
import { Pool } from "../../pool.ts";
import { TimerQueue } from "../../timer-queue.ts";
import { engineEnd } from "../../validity.ts";
import type { Ballot } from "./quorum/ballot.ts";
import type { Bid, Election } from "./quorum/bid.ts";
import { connectionOfNode, type RedisClient } from "./client.ts";
import type { Connection } from "./connection.ts";
import { Electorate } from "./quorum/electorate.ts";
import { KeySpace, type LockKeys } from "./keys.ts";
import type { NodeListener, PushedGrant } from "./node.ts";
import { resolveRedlock, type RedlockOptions, type RedlockSettings } from "./options.ts";
import { Census } from "./quorum/census.ts";
import { QuorumHold } from "./quorum/hold.ts";
import { NamedAttempts } from "./quorum/named-attempts.ts";
import { QuorumRelease } from "./quorum/release.ts";
import { PassingOn } from "./quorum/passing-on.ts";
import { QuorumRequest } from "./quorum/request.ts";
import type { QuorumHost } from "./quorum/request-host.ts";
import { TakingBack } from "./quorum/taking-back.ts";
import type { Vote } from "./quorum/vote.ts";
import type { Hearing } from "./subscriber.ts";
import { Voter } from "./quorum/voter.ts";
import { TokenTable } from "./token-table.ts";
import { makeToken } from "./tokens.ts";
import { watchByAsking } from "./watch.ts";
import { encodeWords } from "./words.ts";

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
  readonly #keySpace: KeySpace;
  readonly #clientId: string;
  readonly #requests = new Pool<QuorumRequest>();
  readonly #attempts = new NamedAttempts();
  /** Bids that wait for votes, by token. */
  readonly #bids = new TokenTable<Bid>();
  /** Grants in use, by token; forgotten when the nodes have forgotten them. */
  readonly #holds = new TokenTable<QuorumHold>();
  readonly #ends: TimerQueue<QuorumHold>;
  readonly #releases = new TokenTable<QuorumRelease>();
  readonly #takingBack: TakingBack;
  readonly #census: Census;
  readonly #listeners = new Set<DriverListener>();

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
    this.#keySpace = new KeySpace(commonPrefix(connections), prefix);
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
          answered: (voter, isNewRun) => {
            this.electorate.answered(voter, isNewRun);
          },
        }),
    );
    this.electorate = new Electorate(clock, voters);
    this.#takingBack = new TakingBack(this.electorate, clock);
    this.#census = new Census(this.electorate, this.#keySpace, this.commandTimeoutMs);
    this.agenda = new TimerQueue(
      clock,
      (request) => {
        request.wake();
      },
      true,
    );
    this.#ends = new TimerQueue(clock, (hold) => {
      this.#forget(hold);
    });
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
    const hold = this.#holdOf(given.key, given.token);
    this.#forget(hold);
    const passing = new PassingOn(this, given, hold);
    return this.#begin(new QuorumRequest(this, request, this.#keysOf(request.key), passing));
  }

  async extend({ key, token, ttlMs, words }: ExtendRequest): Promise<Extension> {
    const hold = this.#holdOf(key, token);
    if (hold.dueAt < this.clock.now() + ttlMs) {
      this.#ends.schedule(hold, this.clock.now() + ttlMs);
    }
    const refusal = hold.isKnown ? undefined : await this.#learn(hold);
    return refusal ?? hold.extend(ttlMs, encodeWords(words ?? hold.ownNumber()));
  }

  /** Which nodes have a grant of another process: only those that have it before they are asked to prolong it count. */
  async #learn({ key, token }: QuorumHold): Promise<Exclude<Extension, { outcome: "renewed" }> | undefined> {
    try {
      const verified = await this.verify(key, token);
      return verified.outcome === "lost" ? verified : undefined;
    } catch (error) {
      return { outcome: "unknown", error };
    }
  }

  verify(key: string, token: string): Promise<Verified> {
    return this.#census.ready(key, () => this.#holdOf(key, token).verify());
  }

  release(key: string, token: string, until: number): Promise<boolean> {
    const hold = this.#holdOf(key, token);
    this.#forget(hold);
    this.#attempts.release(hold);
    const release = new QuorumRelease(this.electorate, hold);
    this.#releases.set(token, release);
    release.begin(until, () => {
      this.#releases.delete(token);
    });
    return release.result;
  }

  downgrade(key: string, token: string, until: number): Promise<boolean> {
    const hold = this.#holdOf(key, token);
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
    return () => {
      this.#listeners.delete(listener);
    };
  }

  inspect(key: string): Promise<LockState> {
    return this.#census.inspect(key);
  }

  list(query: { prefix: string; cursor: string | null; limit: number }): Promise<{
    locks: LockState[];
    cursor: string | null;
  }> {
    return this.#census.list(query);
  }

  watch(target: string | { readonly prefix: string }, signal: AbortSignal): AsyncIterable<LockEvent> {
    return watchByAsking(this, target, signal);
  }

  breakGrant(key: string, fencingToken: bigint, reason: string): Promise<boolean> {
    return this.#census.breakGrant(key, fencingToken, reason);
  }

  checkFence(key: string, fencingToken: bigint): Promise<"current" | "stale" | "unknown"> {
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
    this.#ends.clear();
    const releases = this.#releases.items().map(({ done }) => done);
    const leftovers = this.electorate.voters.map(({ releaser }) => releaser.idle());
    await Promise.all([...releases, ...leftovers]); // bounded by the command budget
    for (const voter of this.electorate.voters) {
      voter.close();
    }
  }

  // What requests need.

  tokenFor({ key, attemptId, share }: AcquireRequest, ticket: number): string {
    return makeToken({ key, attemptId, clientId: this.#clientId, share, ticket }, this.random);
  }

  opened(bid: Bid): void {
    if (!this.#bids.get(bid.token)) {
      this.#bids.set(bid.token, bid);
    }
    this.#takingBack.keep(bid.token); // it may be the token of an earlier bid, which was given up
  }

  elected(bid: Bid, { key, ttlMs, attemptId }: QuorumRequest, election: Election): Grant {
    this.#close(bid);
    const { token, ballots, first, last, validity, isClaim } = election;
    const hold = this.#holdOf(key, token, bid);
    // A repeat has the number that the grant was told with, while it is that grant; else it is another one of that token.
    const isSameGrant = hold.fencingNumber !== undefined && hold.isStill(election.told());
    const number = isSameGrant ? (hold.fencingNumber ?? first) : first;
    hold.fencingNumber = number;
    hold.attemptId = attemptId;
    const lasts = hold.validity !== undefined && hold.validity.until > validity.until;
    hold.validity = isSameGrant && lasts ? hold.validity : validity;
    for (const { voter, vote } of ballots) {
      hold.add(voter, vote.first, vote.runId);
    }
    this.#ends.schedule(hold, Math.max(hold.dueAt, engineEnd(validity) + ttlMs));
    this.#takingBack.keep(token); // given up by an earlier bid, or given back by a node that did not vote
    if (token !== bid.token) {
      this.#takingBack.bid(bid);
    }
    return { key, token, fencingToken: BigInt(number), fencingCount: last - first + 1, validity, isClaim };
  }

  abandoned(bid: Bid, isClaimable: boolean, name?: "release" | "recant"): void {
    this.#close(bid);
    if (!isClaimable) {
      this.#takingBack.bid(bid, name);
      return;
    }
    this.#attempts.leave(bid.token);
  }

  settled(request: QuorumRequest): void {
    this.#requests.delete(request);
    this.#attempts.settled(request);
  }

  leaderOf(request: QuorumRequest): QuorumRequest | undefined {
    return this.#attempts.leaderOf(request);
  }

  isReleased(token: string): boolean {
    return this.#attempts.isReleased(token);
  }

  takeBackReleased(bid: Bid, ballot: Ballot, token: string): void {
    this.#takingBack.released(bid, ballot, token);
  }

  isHeld(token: string): boolean {
    return this.#holds.get(token)?.isLost === false;
  }

  leftBehind(bid: Bid, ballot: Ballot, vote: Vote | undefined): void {
    const hold = this.#holds.get(vote?.token ?? bid.token);
    if (hold) {
      if (vote) {
        this.#heardLate(hold, ballot.voter, vote);
      }
    } else if (!this.#attempts.isClaimable(bid.token)) {
      const takeBack = (): void => {
        this.#takingBack.ballot(ballot, bid);
      };
      const release = vote && this.#releases.get(vote.token);
      if (release) {
        release.heardLate(ballot.voter, takeBack);
      } else {
        takeBack();
      }
    }
  }

  givenBack(bid: Bid, ballot: Ballot): void {
    this.#takingBack.ballot(ballot, bid);
  }

  async holderOf(key: string): Promise<Holder | undefined> {
    return (await this.inspect(key)).holders[0];
  }

  // What the nodes push.

  #listenerOf(index: number): NodeListener {
    return {
      granted: (grant) => {
        this.#granted(index, grant);
      },
      askAgain: (token) => {
        const bid = this.#bids.get(token);
        if (bid?.isOpen === true) {
          bid.ballots[index]?.ask();
        }
      },
      inquired: (token, number) => {
        if (!this.isHeld(token)) {
          this.#bids.get(token)?.ballots[index]?.inquired(number);
        }
      },
      ended: (token, reason, cause) => {
        this.#ended(index, token, reason, cause);
      },
      revived: () => {
        this.#askAgain(index);
      },
      hearingChanged: (hearing) => {
        this.#hearingChanged(index, hearing);
      },
    };
  }

  #granted(index: number, grant: PushedGrant): void {
    const bid = this.#bids.get(grant.token);
    const hold = this.#holds.get(grant.token);
    const voter = this.electorate.voters[index] as Voter;
    if (bid?.isOpen === true) {
      bid.ballots[index]?.granted(grant);
    } else if (hold) {
      if (grant.runId === voter.guard.runId) {
        this.#heardLate(hold, voter, grant);
      }
    } else if (!this.#attempts.isClaimable(grant.token)) {
      const key = this.#keySpace.keyOf(grant.lock);
      if (key !== undefined) {
        this.#takingBack.pushed(voter, key, this.#keysOf(key), grant.token, grant.ttlMs);
      }
    }
  }

  #ended(index: number, token: string, reason: LossReason, cause: unknown): void {
    const voter = this.electorate.voters[index] as Voter;
    this.#bids.get(token)?.ballots[index]?.broken();
    const hold = this.#holds.get(token);
    const wasLost = hold?.isLost;
    if (hold?.end(voter, reason) === true && wasLost === false) {
      for (const listener of this.#listeners) {
        listener.lost(token, reason, cause);
      }
      for (const other of this.electorate.voters) {
        this.#takingBack.lost(hold, other);
      }
    }
  }

  /** A node's vote came when the grant was in use already, or was over. */
  #heardLate(hold: QuorumHold, voter: Voter, { first, runId }: Pick<Vote, "first" | "runId">): void {
    if (hold.isLost) {
      this.#takingBack.lost(hold, voter);
    } else if (!this.electorate.quarantineOf(voter)) {
      hold.add(voter, first, runId);
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

  #askAgain(index: number): void {
    for (const request of Array.from(this.#requests.items)) {
      request.askNode(index);
    }
  }

  #begin(request: QuorumRequest): QuorumRequest {
    this.#requests.add(request);
    this.#attempts.begun(request);
    request.begin();
    return request;
  }

  #close(bid: Bid): void {
    if (this.#bids.get(bid.token) === bid) {
      this.#bids.delete(bid.token);
    }
  }

  #holdOf(key: string, token: string, bid?: Bid): QuorumHold {
    let hold = this.#holds.get(token);
    if (!hold) {
      hold = new QuorumHold(this, key, this.#keysOf(key), token, bid);
      this.#holds.set(token, hold);
      this.#ends.schedule(hold, this.clock.now() + this.capabilities.maxTtlMs);
    }
    return hold;
  }

  #forget(hold: QuorumHold | undefined): void {
    if (hold) {
      hold.isOver = true;
      this.#holds.delete(hold.token);
      this.#ends.cancel(hold);
    }
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
