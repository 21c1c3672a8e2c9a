import type { Clock } from "../../../runtime/clock.ts";
import type { Grant } from "../../../driver.ts";
import type { LossReason } from "../../../errors.ts";
import { TimerQueue } from "../../../runtime/timer-queue.ts";
import { engineExpiry } from "../../../validity.ts";
import type { KeySpace } from "../protocol/keys.ts";
import type { PushedGrant } from "../protocol/messages.ts";
import { queueEntryExpiry, type PendingRelease } from "../server/pending-release.ts";
import { TokenMap } from "../../../runtime/token-map.ts";
import type { VoteRequest } from "./vote-request.ts";
import type { MajorityAttempt, MajorityGrant } from "./majority-attempt.ts";
import type { NodeSet } from "./node-set.ts";
import { HeldGrant, type HeldGrantHost } from "./held-grant.ts";
import { QuorumRelease } from "./release.ts";
import type { AttemptResidue } from "./vote-residue.ts";
import { countsFrom, type Vote } from "./vote.ts";
import type { QuorumNode } from "./quorum-node.ts";

interface GrantRegistryOptions {
  readonly nodeSet: NodeSet;
  readonly clock: Clock;
  readonly driftFactor: number;
  readonly maxTtlMs: number;
  readonly keySpace: KeySpace;
}

/**
 * What this process has on the nodes, by token: bids under way, grants in use, grants that are being released. Decides what a node
 * must have nothing of from now on: what it has of none of these is taken back from it, until it has forgotten that by itself.
 */
export class GrantRegistry {
  readonly #options: GrantRegistryOptions;
  readonly #attempts = new TokenMap<MajorityAttempt>();
  /** Forgotten when the nodes have forgotten them. */
  readonly #grants = new TokenMap<HeldGrant>();
  readonly #expiries: TimerQueue<HeldGrant>;
  readonly #releases = new TokenMap<QuorumRelease>();
  readonly #grantHost: HeldGrantHost;

  constructor(options: GrantRegistryOptions) {
    this.#options = options;
    this.#grantHost = { ...options, cleanUp: (held, node) => this.#cleanUpGrant(held, node) };
    this.#expiries = new TimerQueue(options.clock, (held) => this.forget(held));
  }

  /** What is heard of its token goes to that bid from now on. */
  opened(attempt: MajorityAttempt): void {
    this.#attempts.set(attempt.token, attempt);
  }

  /** The bid won: the votes are one grant from now on. */
  elected(attempt: MajorityAttempt, majorityGrant: MajorityGrant): Grant {
    this.#close(attempt);
    const { token } = attempt;
    const { key, ttlMs } = attempt.listener;
    const { votes, first, last, validity, isClaim } = majorityGrant;
    const held = this.grantOf(key, token, majorityGrant.residue);
    held.numbers = { first, last };
    held.validUntil = validity.until;
    for (const { node, vote } of votes) {
      held.members.add(node, vote.first, vote.runId);
    }
    this.#expiries.schedule(held, Math.max(held.dueAt, engineExpiry(validity) + ttlMs));
    for (const { releaseQueue } of this.#options.nodeSet.nodes) {
      releaseQueue.cancelCleanUp(token); // given back by a node that did not vote
    }
    return { key, token, fencingToken: BigInt(first), fencingCount: last - first + 1, validity, isClaim };
  }

  /** The bid is over without a grant: what the nodes may have of it is taken back. */
  abandoned(attempt: MajorityAttempt): void {
    this.#close(attempt);
    const proposedFence = this.#options.nodeSet.nextProposal();
    for (const voteRequest of attempt.voteRequests) {
      if (voteRequest.residue.mayExist) {
        this.cleanUpVote(attempt, voteRequest, proposedFence);
      }
    }
  }

  /** Releases a grant, of this process or of another one. Settles as a release of the driver does. */
  release(key: string, token: string, until: number): Promise<boolean> {
    const held = this.grantOf(key, token);
    this.forget(held);
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
      const { clock, keySpace, maxTtlMs } = this.#options;
      held = new HeldGrant(this.#grantHost, { key, keys: keySpace.keysOf(key), token, residue });
      this.#grants.set(token, held);
      this.#expiries.schedule(held, clock.now() + maxTtlMs);
    }
    return held;
  }

  /** It is asked to last so much longer. */
  scheduleExpiry(held: HeldGrant, ttlMs: number): void {
    const end = this.#options.clock.now() + ttlMs;
    if (held.dueAt < end) {
      this.#expiries.schedule(held, end);
    }
  }

  forget(held: HeldGrant): void {
    held.isEnded = true;
    this.#grants.delete(held.token);
    this.#expiries.cancel(held);
  }

  /** A node has something of a bid that it cannot vote for. */
  cleanUpVote(attempt: MajorityAttempt, voteRequest: VoteRequest, proposedFence?: string): void {
    const { key, keys, ttlMs, deadline } = attempt.listener;
    const { token, operations } = attempt;
    const now = this.#options.clock.now();
    const entryEnd = deadline + this.#options.nodeSet.lagMs(voteRequest.node);
    const until = Math.max(
      now + ttlMs,
      voteRequest.residue.mayBeQueued ? queueEntryExpiry(now, entryEnd) : 0,
    );
    const [queueArgs, { latest }] = [operations.queueEntryOn(voteRequest.node), voteRequest.history];
    this.#cleanUp(voteRequest.node, { key, keys, token, queueArgs, until, latest }, proposedFence);
  }

  /** A node has something of a bid that is over. */
  handleLateReply(attempt: MajorityAttempt, voteRequest: VoteRequest, vote: Vote | undefined): void {
    const { token } = attempt;
    const held = this.#grants.get(token);
    if (held) {
      if (vote) {
        this.#lateVote(held, voteRequest.node, vote);
      }
    } else {
      this.#cleanUpAfterRelease(token, voteRequest.node, vote !== undefined, () =>
        this.cleanUpVote(attempt, voteRequest),
      );
    }
  }

  /** What came late of a token is taken back; where that is being given up, in such a way that nobody takes it for lost. */
  #cleanUpAfterRelease(token: string, node: QuorumNode, isVote: boolean, cleanUp: () => void): void {
    const release = this.#releases.get(token);
    if (!release) {
      cleanUp();
    } else if (isVote) {
      release.lateVote(node, cleanUp);
    } else {
      release.lateQueueEntry(node, cleanUp);
    }
  }

  /** A node has granted something, by message. */
  granted(index: number, grant: PushedGrant): void {
    const { nodeSet, keySpace } = this.#options;
    const attempt = this.#attempts.get(grant.token);
    const held = this.#grants.get(grant.token);
    const node = nodeSet.nodes[index] as QuorumNode;
    if (attempt?.isOpen === true) {
      attempt.voteRequests[index]?.granted(grant);
    } else if (held) {
      if (grant.runId === node.guard.runId) {
        const { clock, driftFactor } = this.#options;
        const { first, runId, waitMs } = grant;
        const from = countsFrom(clock.now(), waitMs, driftFactor);
        this.#lateVote(held, node, { first, runId, countsFrom: from });
      }
    } else if (node.server.hasOwnChannel) {
      const key = keySpace.keyOf(grant.lock);
      if (key !== undefined) {
        const { token } = grant;
        this.#cleanUpAfterRelease(token, node, true, () => {
          const until = this.#options.clock.now() + grant.ttlMs;
          this.#cleanUp(node, { key, keys: keySpace.keysOf(key), token, queueArgs: "", until });
        });
      }
    }
  }

  /** A node wants to be asked again. */
  retry(index: number, token: string): void {
    const attempt = this.#attempts.get(token);
    if (attempt?.isOpen === true) {
      attempt.voteRequests[index]?.send();
    }
  }

  /** A rival that came earlier asks a node's vote with this number back. */
  voteRequestedBack(index: number, token: string, number: number): void {
    this.#attempts.get(token)?.voteRequests[index]?.voteRequestedBack(number);
  }

  /** A node has ended a grant. @returns what is lost by that */
  ended(index: number, token: string, reason: LossReason): HeldGrant | undefined {
    const node = this.#options.nodeSet.nodes[index] as QuorumNode;
    this.#attempts.get(token)?.voteRequests[index]?.invalidated();
    const held = this.#grants.get(token);
    const wasLost = held?.isLost;
    return held?.members.end(node, reason) === true && wasLost === false ? held : undefined;
  }

  /** Of a lost grant: what is left of it on the nodes that did not end it themselves. */
  cleanUpLost(held: HeldGrant): void {
    for (const node of this.#options.nodeSet.nodes) {
      this.#cleanUpGrant(held, node);
    }
  }

  /** @returns the releases that are still under way */
  close(): Promise<void>[] {
    this.#expiries.clear();
    return this.#releases.items().map(({ done }) => done);
  }

  /** A node's vote came when the grant was in use already, or was over. */
  #lateVote(held: HeldGrant, node: QuorumNode, vote: Pick<Vote, "first" | "runId" | "countsFrom">): void {
    if (held.isLost) {
      this.#cleanUpGrant(held, node);
    } else if (!this.#options.nodeSet.quarantineOf(node)) {
      held.members.add(node, vote.first, vote.runId, vote.countsFrom);
    }
  }

  /** A node did not know that the grant is over, or was late with its vote. */
  #cleanUpGrant(held: HeldGrant, node: QuorumNode): void {
    if (held.mayBeStoredOn(node)) {
      const { key, keys, token } = held;
      const [queueArgs, latest] = [held.queueArgsOn(node), held.latestExecutionOn(node)];
      this.#cleanUp(node, {
        key,
        keys,
        token,
        queueArgs,
        until: held.residueExpiry(node, held.dueAt),
        latest,
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
