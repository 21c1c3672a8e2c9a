import type { Clock } from "../../../runtime/clock.ts";
import type { Grant } from "../../../driver.ts";
import type { LossReason } from "../../../errors.ts";
import { TimerQueue } from "../../../runtime/timer-queue.ts";
import { engineExpiry } from "../../../validity.ts";
import type { KeySpace } from "../protocol/keys.ts";
import type { PushedGrant } from "../protocol/messages.ts";
import { queueEntryExpiry, type PendingRelease } from "../server/releases.ts";
import { TokenMap } from "../../../runtime/token-map.ts";
import type { VoteRequest } from "./vote-request.ts";
import type { MajorityAttempt, MajorityGrant } from "./majority-attempt.ts";
import type { NodeSet } from "./node-set.ts";
import { HeldGrant, type HeldGrantHost } from "./held-grant.ts";
import { QuorumRelease } from "./release.ts";
import { type AttemptResidue, countsFrom, type Vote } from "./vote.ts";
import type { QuorumNode } from "./quorum-node.ts";

interface GrantRegistryOptions {
  readonly nodeSet: NodeSet;
  readonly clock: Clock;
  readonly driftFactor: number;
  /** How long a grant is remembered after its last extension here: its TTL, and until no request of it can be executed any longer. */
  readonly keptMs: number;
  readonly keySpace: KeySpace;
}

/**
 * All tokens of this process on the nodes: attempts under way, grants in use, and grants that are being released. Decides which
 * tokens must hold nothing on a node. The registry cleans up the residue of such a token until the node has dropped it.
 */
export class GrantRegistry {
  readonly #options: GrantRegistryOptions;
  readonly #attempts = new TokenMap<MajorityAttempt>();
  /** The registry forgets a grant that this process has not extended for some time. Another process may still use the grant. */
  readonly #grants = new TokenMap<HeldGrant>();
  readonly #expiries: TimerQueue<HeldGrant>;
  readonly #releases = new TokenMap<QuorumRelease>();
  readonly #grantHost: HeldGrantHost;

  constructor(options: GrantRegistryOptions) {
    this.#options = options;
    this.#grantHost = { ...options, cleanUp: (held, node) => this.#cleanUpGrant(held, node) };
    this.#expiries = new TimerQueue(options.clock, ({ token }) => this.#grants.delete(token));
  }

  /** Notifications for the token of the attempt go to the attempt from now on. */
  opened(attempt: MajorityAttempt): void {
    this.#attempts.set(attempt.token, attempt);
  }

  /** The attempt is elected: its votes are one grant from now on. */
  won(attempt: MajorityAttempt, majorityGrant: MajorityGrant): Grant {
    this.#close(attempt);
    const { token } = attempt;
    const { key, ttlMs } = attempt.listener;
    const { votes, first, last, validity, isClaim } = majorityGrant;
    const held = this.grantOf(key, token, majorityGrant.residue);
    attempt.held = held;
    held.numbers = { first, last };
    held.validUntil = validity.until;
    for (const { node, vote } of votes) {
      held.members.add(node, vote.first, vote.runId);
    }
    this.#expiries.schedule(held, Math.max(held.dueAt, engineExpiry(validity) + ttlMs));
    for (const { releaseQueue } of this.#options.nodeSet.nodes) {
      releaseQueue.cancelCleanUp(token); // a node in quarantine had a clean-up of the vote
    }
    const via = votes.some(({ vote }) => vote.isNotified) ? "message" : "reply";
    return {
      key,
      token,
      fencingToken: BigInt(first),
      fencingCount: last - first + 1,
      validity,
      isClaim,
      via,
    };
  }

  /** The attempt ends without a grant: its residue on the nodes is cleaned up. */
  abandoned(attempt: MajorityAttempt): void {
    this.#close(attempt);
    const proposedFence = this.#options.nodeSet.nextProposal();
    for (const voteRequest of attempt.voteRequests) {
      if (voteRequest.residue.mayExist) {
        this.cleanUpVote(attempt, voteRequest, proposedFence);
      }
    }
  }

  /** Releases a grant of this process or of another process. Settles as `release` of the driver does. */
  release(key: string, token: string, until: number): Promise<boolean> {
    const held = this.grantOf(key, token);
    held.isEnded = true;
    this.#grants.delete(token);
    this.#expiries.cancel(held);
    const release = new QuorumRelease(this.#options.nodeSet, held);
    this.#releases.set(token, release);
    release.begin(until, () => {
      if (this.#releases.get(token) === release) {
        this.#releases.delete(token);
      }
    });
    return release.result;
  }

  /** @param residue of the elected attempt; undefined: another process acquired the grant, unless the grant is known here */
  grantOf(key: string, token: string, residue?: AttemptResidue): HeldGrant {
    let held = this.#grants.get(token);
    if (!held) {
      const { clock, keySpace, keptMs } = this.#options;
      held = new HeldGrant(this.#grantHost, { key, keys: keySpace.keysOf(key), token, residue });
      this.#grants.set(token, held);
      this.#expiries.schedule(held, clock.now() + keptMs);
    }
    return held;
  }

  /** An extension by `ttlMs` is requested. */
  scheduleExpiry(held: HeldGrant, ttlMs: number): void {
    const end = this.#options.clock.now() + ttlMs;
    if (held.dueAt < end) {
      this.#expiries.schedule(held, end);
    }
  }

  /** A node has residue of an attempt for which the node cannot vote. */
  cleanUpVote(attempt: MajorityAttempt, voteRequest: VoteRequest, proposedFence?: string): void {
    const { key, keys, ttlMs, deadline } = attempt.listener;
    const { token, operations } = attempt;
    const now = this.#options.clock.now();
    const entryEnd = deadline + this.#options.nodeSet.lagMs(voteRequest.node);
    const until = Math.max(
      now + ttlMs,
      voteRequest.residue.mayBeQueued ? queueEntryExpiry(now, entryEnd) : 0,
    );
    const [entryTail, earlier] = [operations.queueEntryOn(voteRequest.node), voteRequest.history];
    this.#cleanUp(voteRequest.node, { key, keys, token, entryTail, until, earlier }, proposedFence);
  }

  /**
   * A node has residue of an attempt that has ended. While the grant of an elected attempt is in use, its release cleans up, and no time
   * ends the use: another process may have adopted the lease, or the watchdog thread may extend the grant.
   */
  handleLateReply(attempt: MajorityAttempt, voteRequest: VoteRequest, vote: Vote | undefined): void {
    const { token, held } = attempt;
    const release = this.#releases.get(token);
    const cleanUp = (): void => this.cleanUpVote(attempt, voteRequest);
    if (held?.isEnded === false) {
      if (vote) {
        this.#lateVote(held, voteRequest.node, vote);
      }
    } else if (vote && release) {
      release.lateVote(voteRequest.node, cleanUp); // the release under way may release the vote as well
    } else {
      cleanUp();
    }
  }

  /**
   * A node granted a lock by notification. The grant of an unknown token is ignored, because another process may have adopted its
   * lease. The grant of an abandoned attempt is a claim, which expires.
   */
  granted(index: number, grant: PushedGrant): void {
    const { nodeSet } = this.#options;
    const attempt = this.#attempts.get(grant.token);
    const held = this.#grants.get(grant.token);
    const node = nodeSet.nodes[index] as QuorumNode;
    if (attempt?.isOpen === true) {
      attempt.voteRequests[index]?.granted(grant);
    } else if (held && grant.runId === node.guard.runId) {
      const { clock, driftFactor } = this.#options;
      const { first, runId, waitMs } = grant;
      const from = countsFrom(clock.now(), waitMs, driftFactor);
      this.#lateVote(held, node, { first, runId, countsFrom: from });
    }
  }

  /**
   * A release has granted the vote of a node, so the vote request is sent again. A vote request in quarantine waits until its retry is due.
   * Otherwise the waiters of one process pass a vote that does not count around, without a pause.
   */
  retry(index: number, token: string): void {
    const attempt = this.#attempts.get(token);
    const voteRequest = attempt?.voteRequests[index];
    if (attempt?.isOpen === true && voteRequest?.isQuarantined === false) {
      voteRequest.send();
    }
  }

  /** An earlier attempt requests the vote of a node with this number back. */
  voteRequestedBack(index: number, token: string, number: number): void {
    this.#attempts.get(token)?.voteRequests[index]?.voteRequestedBack(number);
  }

  /** A node ended a grant. @returns the grant, if the grant is lost by this */
  ended(index: number, token: string, reason: LossReason): HeldGrant | undefined {
    const node = this.#options.nodeSet.nodes[index] as QuorumNode;
    this.#attempts.get(token)?.voteRequests[index]?.invalidated();
    const held = this.#grants.get(token);
    const wasLost = held?.isLost;
    return held?.members.end(node, reason) === true && wasLost === false ? held : undefined;
  }

  /** Cleans up a lost grant on the nodes that still have the grant. */
  cleanUpLost(held: HeldGrant): void {
    for (const node of this.#options.nodeSet.nodes) {
      this.#cleanUpGrant(held, node);
    }
  }

  /** @returns the releases that are under way */
  close(): Promise<void>[] {
    this.#expiries.clear();
    return this.#releases.items().map(({ done }) => done);
  }

  /** The vote of a node arrived after the election. */
  #lateVote(held: HeldGrant, node: QuorumNode, vote: Pick<Vote, "first" | "runId" | "countsFrom">): void {
    if (held.isLost) {
      this.#cleanUpGrant(held, node);
    } else if (!this.#options.nodeSet.quarantineOf(node)) {
      held.members.add(node, vote.first, vote.runId, vote.countsFrom);
    }
  }

  /** The grant has ended, but the node may still have it. */
  #cleanUpGrant(held: HeldGrant, node: QuorumNode): void {
    if (held.mayBeStoredOn(node)) {
      const { key, keys, token } = held;
      const [entryTail, earlier] = [held.entryTailOn(node), held.earlierRequestsOn(node)];
      this.#cleanUp(node, {
        key,
        keys,
        token,
        entryTail,
        until: held.residueExpiry(node, held.dueAt),
        earlier,
      });
    }
  }

  #cleanUp(
    { releaseQueue }: QuorumNode,
    pending: PendingRelease,
    proposedFence: string = this.#options.nodeSet.nextProposal(),
  ): void {
    releaseQueue.cleanUp({ ...pending, proposedFence });
  }

  #close(attempt: MajorityAttempt): void {
    this.#attempts.delete(attempt.token);
  }
}
