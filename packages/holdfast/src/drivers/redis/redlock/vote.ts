import type { Clock, Instant } from "../../../runtime/clock.ts";
import { type CountedVote, publish } from "../../../diagnostics.ts";
import type { AcquireRequest, Grant } from "../../../driver.ts";
import { remainingValidityMs, validFrom, type Validity } from "../../../validity.ts";
import type { MajorityGrant } from "./majority-attempt.ts";
import type { QuorumNode } from "./quorum-node.ts";
import { type Reply, withProposedFence } from "../protocol/operation.ts";
import { encodeMetadata } from "../protocol/metadata.ts";
import type { NodeSet } from "./node-set.ts";
import { RequestHistory } from "../server/request-history.ts";
import { outcomeOf } from "../server/errors.ts";
import type { NodeVote } from "../../../errors.ts";
import type { Quarantine } from "./restart-guard.ts";
import type { PushedGrant } from "../protocol/messages.ts";
import type { NodeReport } from "./majority.ts";
import { type ClockReading, readingOf } from "./clock-agreement.ts";

// The votes in diagnostics. Without a subscriber, no object is created.

export function publishVote(
  { key, fencingToken }: Grant,
  { rounds, votes }: MajorityGrant,
  nodeCount: number,
  clock: Clock,
): void {
  publish("vote", () => ({
    key,
    engine: "redlock",
    fencingToken,
    rounds,
    granted: votes.length,
    nodes: nodeCount,
    votes: votes.map(({ node, vote }) => countedVote(node, vote, clock)),
  }));
}

export function countedVote(
  { name }: QuorumNode,
  { runId, isNotified, validity }: { runId: string; isNotified: boolean; validity: Validity },
  clock: Clock,
): CountedVote {
  return {
    node: name,
    runId,
    via: isNotified ? "notification" : "reply",
    remainingMs: remainingValidityMs(validity, clock),
  };
}

interface VoteOperationsOptions {
  readonly clock: Clock;
  readonly claimMs: number;
  readonly nodeSet: NodeSet;
  readonly request: AcquireRequest;
  /** When the request stops waiting, on the scale of `clock.now()`. */
  readonly deadline: number;
  readonly token: string;
  readonly ignoresQueueLimit: boolean;
}

/** Builds the operations of one majority attempt for the scripts of the nodes. */
export class VoteOperations {
  readonly #token: string;
  readonly #ttlMs: string;
  readonly #fencingCount: string;
  /** The metadata of the holder. */
  readonly #info: string;
  /** The fencing numbers of one grant. */
  readonly #count: number;
  /** The argument of a request that asks for a queue entry. */
  readonly #waitMode: string;
  readonly #nodeSet: NodeSet;
  /** The part of a queue entry between the token and the kind of the channel. */
  readonly #entryTail: string;
  /** The last queue entry, without the token. Most nodes have the same kind of channel. */
  #queueEntry = "";
  /** Most nodes get the same request: they share one array of arguments. */
  #lastRequest: readonly string[] = [];
  #args: readonly string[] = [];

  constructor(options: VoteOperationsOptions) {
    const { clock, claimMs, nodeSet, request, deadline, token, ignoresQueueLimit } = options;
    const { ttlMs, fencingCount, info } = request;
    const remainingMs = deadline - clock.now();
    // A node's clock may be ahead of the median, and must not remove a queue entry whose request still waits.
    const { maxClockDifferenceMs } = nodeSet;
    const until =
      remainingMs === Infinity ? 0 : Math.ceil(nodeSet.micros() / 1000 + remainingMs + maxClockDifferenceMs);
    this.#entryTail = `${Math.min(ttlMs, claimMs)} ${fencingCount} ${until}`;
    this.#token = token;
    this.#ttlMs = String(ttlMs);
    this.#fencingCount = String(fencingCount);
    this.#count = fencingCount;
    this.#info = encodeMetadata(info);
    this.#waitMode = ignoresQueueLimit ? "3" : "2";
    this.#nodeSet = nodeSet;
  }

  /**
   * The request for a node's vote.
   * @param waits ask for a queue entry as well
   */
  request(node: QuorumNode, proposedFence: string, waits: boolean): readonly string[] {
    const queueEntry = this.queueEntryOn(node);
    const wait = waits ? this.#waitMode : "0";
    const [lastProposal, lastEntry, lastWait] = this.#lastRequest;
    if (lastProposal !== proposedFence || lastEntry !== queueEntry || lastWait !== wait) {
      this.#lastRequest = [proposedFence, queueEntry, wait];
      const args = ["acquire", this.#token, queueEntry, this.#ttlMs, this.#fencingCount, wait, this.#info];
      this.#args = withProposedFence([...args, this.#nodeSet.latestExecution()], proposedFence);
    }
    return this.#args;
  }

  /** Yields the vote with this number, and queues the request again. */
  yield(node: QuorumNode, number: number, proposedFence: string): readonly string[] {
    const args = [
      "yield",
      this.#token,
      this.queueEntryOn(node),
      String(number),
      this.#ttlMs,
      this.#fencingCount,
      this.#info,
      this.#nodeSet.latestExecution(),
    ];
    return withProposedFence(args, proposedFence);
  }

  /** Raises the number of the grant to this number, unless the grant has a greater one. */
  raiseFence(number: number): readonly string[] {
    return withProposedFence(["raiseFence", this.#token, String(number), this.#fencingCount], String(number));
  }

  /** The queue entry on this node, without the token. */
  queueEntryOn(node: QuorumNode): string {
    const kind = node.server.channelKind;
    if (!this.#queueEntry.endsWith(kind)) {
      this.#queueEntry = `${this.#entryTail} ${kind}`;
    }
    return this.#queueEntry;
  }

  /** The full reply of a node that replied with only the first number, as to the usual grant. */
  grantFrom(first: number): readonly unknown[] {
    return [1, first, first + this.#count - 1];
  }
}

/**
 * The residue of the requests for one node's vote: the node may have a grant, or a queue entry. The residue outlives its majority
 * attempt, because late replies and failures still change the residue.
 */
class VoteResidue {
  readonly history: RequestHistory = new RequestHistory();
  /** The queue position in the node's last reply; undefined: the node has no queue entry. */
  position: number | undefined;
  /** A reply to the last request is outstanding. */
  isPending = true;
  /** The requests that may have left something on the node. */
  #unconfirmed = 0;

  /** Whether the node may have a grant or a queue entry. */
  get mayExist(): boolean {
    return this.#unconfirmed > 0;
  }

  /** Whether the node may have a queue entry. */
  get mayBeQueued(): boolean {
    return this.position !== undefined || this.isUnanswered || this.isPending;
  }

  /** Whether the last request got no reply. */
  get isUnanswered(): boolean {
    return this.history.failures > 0;
  }

  /** A request was sent that may leave something on the node. */
  add(): void {
    this.#unconfirmed += 1;
  }

  /** A request failed, or the node refused the request. If the request had no effect, it left nothing on the node. */
  requestFailed(error: unknown): void {
    this.history.failures += 1;
    if (this.#unconfirmed > 0 && outcomeOf(error) === "none") {
      this.#unconfirmed -= 1;
    }
  }

  /** The node confirmed that it has neither a grant nor a queue entry. */
  clear(): void {
    this.#unconfirmed = 0;
  }
}

/** The residue of an elected majority attempt on all nodes. */
export interface AttemptResidue {
  /** By node. */
  readonly nodes: readonly VoteResidue[];
  /** The residue's queue entry on a node, without the token. */
  readonly queueEntryOn: (node: QuorumNode) => string;
}

/** `asked`: no reply to the last request yet. `full`: the node's queue is full. */
type VoteReply = NodeVote["vote"] | "asked" | "full";

interface VoteStateHost {
  readonly clock: Clock;
  readonly nodeSet: NodeSet;
}

/** The last reply of one node to a majority attempt, and whether the node's vote counts now. */
export class VoteState {
  readonly node: QuorumNode;
  readonly residue: VoteResidue = new VoteResidue();
  vote: Vote | undefined;
  reason: string | null = null;
  latencyMs: number | null = null;
  error: unknown;
  /** The token that has the node's vote instead of this attempt, by the node's last reply. */
  holder = "";
  readonly #host: VoteStateHost;
  #reply: VoteReply = "asked";

  constructor(host: VoteStateHost, node: QuorumNode) {
    this.#host = host;
    this.node = node;
  }

  get reply(): VoteReply {
    return this.#reply;
  }

  set reply(reply: VoteReply) {
    this.#reply = reply;
    this.residue.isPending = reply === "asked";
  }

  get position(): number | undefined {
    return this.residue.position;
  }

  /** A reply to the last request is outstanding. */
  get isPending(): boolean {
    return this.residue.isPending;
  }

  /** Whether the node's reply shows the state of the lock: granted, held by another token, or with a full queue. */
  get hasReplied(): boolean {
    return this.reply === "held" || this.reply === "full" || (this.reply === "granted" && !this.quarantine);
  }

  get hasValidVote(): boolean {
    return this.vote !== undefined && remainingValidityMs(this.vote.validity, this.#host.clock) > 0;
  }

  /** The vote counts only later, because an earlier holder may still rely on its lease. */
  get isWaiting(): boolean {
    return this.vote !== undefined && this.#host.clock.now() < this.vote.countsFrom;
  }

  /** Why the node's vote does not count; undefined: it does. */
  get quarantine(): Quarantine | undefined {
    return this.#host.nodeSet.quarantineOf(this.node, this.vote?.reading);
  }

  /** Whether the last reply counted for nothing because of a quarantine that lasts. */
  get isQuarantined(): boolean {
    return this.reply === "quarantined" && this.quarantine !== undefined;
  }

  /** Whether the client may have a queue entry on this node: the node's notifications reach the client. */
  get mayQueue(): boolean {
    return this.node.server.notificationStatus === "verified";
  }

  /** Whether the vote counts now: the node has not restarted since the vote, and the node's clock was right. */
  get countsNow(): boolean {
    return (
      this.hasValidVote && !this.isWaiting && this.vote?.runId === this.node.guard.runId && !this.quarantine
    );
  }
}

/**
 * The votes of one node that an attempt yields to an earlier attempt. After a yield, a vote of the node counts only with a greater
 * number, whether the vote arrives by reply or by notification.
 */
export class VoteYield {
  /** The number of the last yielded vote. */
  #yielded = 0;
  /** No reply has confirmed the yield yet: until then every request to the node yields. */
  #isPending = false;
  /** The largest number that was requested back. An inquiry can arrive before its vote. */
  #requestedBack = 0;

  /** An earlier attempt requests the vote with this number back. @returns whether the vote has not been yielded yet */
  voteRequestedBack(number: number): boolean {
    if (number <= this.#yielded) {
      return false;
    }
    this.#requestedBack = Math.max(this.#requestedBack, number);
    return true;
  }

  isRequestedBack(vote: Vote): boolean {
    return this.#requestedBack >= vote.first;
  }

  /** The next request yields the vote. */
  begin(): void {
    this.#yielded = this.#requestedBack;
    this.#isPending = true;
  }

  /** The number of the vote that the next request yields; 0: none. */
  get number(): number {
    return this.#isPending ? this.#yielded : 0;
  }

  /** The node replied to a request that yielded the vote with this number. */
  answered(number: number): void {
    this.#isPending &&= number !== this.#yielded;
  }

  hasYielded(vote: Vote): boolean {
    return vote.first <= this.#yielded;
  }

  /** The attempt has yielded a vote of the node before. */
  get hasBegun(): boolean {
    return this.#yielded > 0;
  }
}

/** A vote that does not count yet is requested again after this time, ms, at the earliest. */
const minRetryMs = 20;

/** The grant of one node. */
export interface Vote extends NodeReport {
  readonly validity: Validity;
  /** The vote is valid for less than the TTL until its first extension, because the node granted the vote by notification. */
  readonly isClaim: boolean;
  readonly isNotified: boolean;
  /** The run of the node that voted. */
  readonly runId: string;
  /** When the vote arrived here, on the scale of `clock.now()`. */
  readonly receivedAt: number;
  /** From when on the vote counts, on the same scale: an earlier holder may rely on its lease until then. */
  readonly countsFrom: number;
  /** The node's clock at the time of the vote. */
  readonly reading: ClockReading;
}

export interface VoteContext {
  readonly clock: Clock;
  readonly ttlMs: number;
  readonly driftFactor: number;
  /** The round of the attempt in which the vote arrives. */
  readonly round: number;
}

/** The validity of a vote by reply starts when its request was sent. */
export function voteByReply(
  { clock, ttlMs, driftFactor, round }: VoteContext,
  [, first, last, , waitMs]: readonly unknown[],
  { sent, runId, serverMicros }: Reply,
): Vote {
  const now = clock.now();
  return {
    first: Number(first),
    last: Number(last),
    round,
    validity: validFrom(sent, ttlMs, 0, driftFactor),
    isClaim: false,
    isNotified: false,
    runId,
    receivedAt: now,
    countsFrom: countsFrom(now, Number(waitMs ?? 0), driftFactor),
    reading: readingOf(serverMicros, sent.now, now),
  };
}

/**
 * @param at when the notification was read
 * @param ageMs the largest possible age of the notification at that time, by the estimate of the node's clock
 */
export function voteByNotification(
  { ttlMs, driftFactor, round }: Omit<VoteContext, "clock">,
  grant: PushedGrant,
  at: Instant,
  ageMs: number,
): Vote {
  const { first, last, runId } = grant;
  const { now } = at;
  const validity = validFrom(at, grant.ttlMs, ageMs, driftFactor);
  const isClaim = grant.ttlMs < ttlMs;
  return {
    first,
    last,
    round,
    validity,
    isClaim,
    isNotified: true,
    runId,
    receivedAt: now,
    countsFrom: countsFrom(now, grant.waitMs, driftFactor),
    reading: readingOf(grant.serverMicros, now - ageMs, now),
  };
}

/**
 * When a vote begins to count.
 * @param waitMs the remaining time until then, by the clock of the node
 */
export function countsFrom(receivedAt: number, waitMs: number, driftFactor: number): number {
  return waitMs > 0 ? receivedAt + waitMs * (1 + driftFactor) : receivedAt;
}

/** When to request a vote again, on the scale of `clock.now()`: a vote that does not count yet is renewed before it expires. */
export function nextRequestFor({ countsFrom, validity, receivedAt }: Vote, clock: Clock): number {
  const halfMs = remainingValidityMs(validity, clock) / 2;
  return countsFrom > receivedAt ? Math.min(countsFrom, receivedAt + Math.max(halfMs, minRetryMs)) : Infinity;
}
