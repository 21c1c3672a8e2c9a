import { tell } from "../../../diagnostics.ts";
import type { Acquired, AcquireRequest, Requeued } from "../../../driver.ts";
import { closedError, LockError } from "../../../errors.ts";
import type { Timed } from "../../../timer-queue.ts";
import { queueFullError } from "../failures.ts";
import { farewell } from "../farewell.ts";
import type { LockKeys } from "../keys.ts";
import { backoffDelay } from "../pacing.ts";
import { Bid, type BidRequest, type Election } from "./bid.ts";
import type { Electorate } from "./electorate.ts";
import { aboutKey, noQuorum, refusalOf } from "./no-quorum.ts";
import type { PassingOn } from "./passing-on.ts";
import type { QuorumHost } from "./request-host.ts";
import { Split } from "./split.ts";
import { positionIn, rivalsShare, verdictOnTry } from "./verdict.ts";
import { keptForMs } from "./vote.ts";

/**
 * One request for a lock on N nodes: its bid is repeated until it is elected, cancelled, or its time is over. A try asks once;
 * where the answers show that nobody has a majority, rivals tried at the same moment: it then waits its turn for one node timeout.
 */
export class QuorumRequest implements Requeued, Timed, BidRequest {
  dueAt = 0;
  slot = -1;
  place: number = nowhere;
  readonly keys: LockKeys;
  readonly key: string;
  readonly ttlMs: number;
  readonly attemptId: string | undefined;
  readonly result: Promise<Acquired>;
  readonly released: Promise<boolean>;
  readonly #host: QuorumHost;
  readonly #request: AcquireRequest;
  readonly #passing: PassingOn | undefined;
  #deadline: number;
  #bid: Bid | undefined;
  /** The token is an earlier attempt's of the same name: not ours to take back. */
  #hasJoined = false;
  #place: number | undefined;
  #isSettled = false;
  #isSettling = false;
  #wasHeard = false;
  #wasQueued = false;
  readonly #split: Split;
  #meetingFailures = 0;
  #lastError: unknown;
  #resolve!: (acquired: Acquired) => void;
  #reject!: (reason: unknown) => void;

  /** @param passing a grant that is given up in the same step */
  constructor(host: QuorumHost, request: AcquireRequest, keys: LockKeys, passing?: PassingOn) {
    this.#host = host;
    this.#request = request;
    this.keys = keys;
    this.key = request.key;
    this.ttlMs = request.ttlMs;
    this.attemptId = request.attemptId;
    this.#passing = passing;
    this.#split = new Split(host, request.ttlMs);
    this.#deadline = request.deadline ?? host.clock.now() + host.commandTimeoutMs;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.released = passing?.released ?? alreadyReleased;
  }

  get bid(): Bid | undefined {
    return this.#bid;
  }

  get deadline(): number {
    return this.#deadline;
  }

  get #isTry(): boolean {
    return this.#request.deadline === null;
  }

  begin(): void {
    this.#host.agenda.schedule(this, this.#deadline);
    this.#start();
  }

  /**
   * Those before it that asked for the same attempt are settled: a repeat meets what they have.
   * @param wasHeard most nodes have answered the one before it
   */
  lead(wasHeard: boolean): void {
    if (!this.#isSettled && !this.#bid) {
      this.#wasHeard = wasHeard;
      this.begin();
    }
  }

  isOfAttempt(other: QuorumRequest): boolean {
    return other.attemptId === this.attemptId && other.key === this.key && other.#mode === this.#mode;
  }

  get #mode(): string | undefined {
    const { share } = this.#request;
    return share?.kind === "read-write" ? share.mode : undefined;
  }

  /** The bid that tells of this request: its own, or that of the one which it waits for. */
  get #seen(): Bid | undefined {
    return this.#bid ?? this.#host.leaderOf(this)?.bid;
  }

  /** Most nodes have answered, or may still answer as they did before, to this one or to whom it waits for. */
  get isHeard(): boolean {
    const leader = this.#bid ? this : this.#host.leaderOf(this);
    if (leader && leader !== this) {
      return leader.isHeard;
    }
    if (!this.#bid) {
      return this.#wasHeard;
    }
    const heard = this.#bid.ballots.filter(
      ({ hasAnswered, isPending }) => hasAnswered || (this.#wasHeard && isPending),
    );
    return heard.length >= this.#host.electorate.majority;
  }

  get #isLed(): boolean {
    const leader = this.#host.leaderOf(this);
    return leader !== undefined && leader !== this;
  }

  /** Its moment has come: the deadline, or to ask again. */
  wake(): void {
    const now = this.#host.clock.now();
    if (now >= this.#deadline || (this.#isTry && this.#isLed && this.isHeard)) {
      this.#timeOut();
    } else if (!this.#bid) {
      this.#host.agenda.schedule(this, this.#deadline);
      this.#start();
    } else {
      this.#askAgain(this.#bid, now);
    }
  }

  /** A node's messages reach us (again). */
  askNode(index: number): void {
    const ballot = this.#bid?.ballots[index];
    if (ballot && !this.#isSettled && !this.#isTry) {
      ballot.ask();
    }
  }

  /** The grant of that token, which may have seemed ours as well, was given back. */
  forget(token: string): void {
    if (this.#bid?.token === token) {
      this.#hasJoined = false;
      this.#drop();
      this.#open();
    } else {
      this.#bid?.forget(token);
    }
  }

  /** A node may vote that might not. */
  reconsider(): void {
    this.#bid?.reconsider();
  }

  cancel(reason: unknown): void {
    if (!this.#isSettled) {
      this.#abandon();
      this.#reject(reason);
    }
  }

  close(): void {
    this.cancel(closedError(this.key));
  }

  won(election: Election): void {
    const bid = this.#bid as Bid;
    const { token, first, last, validity, isClaim, rounds, ballots } = election;
    this.#settle();
    const number = this.#host.elected(bid, this, election);
    this.#passing?.releaseUnanswered(bid.ballots);
    const { key } = this;
    const fencingToken = BigInt(number);
    tell("vote", () => ({ key, fencingToken, rounds, granted: ballots.length, nodes: bid.ballots.length }));
    const grant = { key, token, fencingToken, fencingCount: last - first + 1, validity, isClaim };
    this.#resolve({ outcome: "granted", grant });
  }

  /** With a fresh token, in the same place. */
  undecided(): void {
    this.#drop();
    this.#open();
  }

  heard(): void {
    if (this.#isTry && !this.#isSettling) {
      this.#judgeTry();
    } else {
      this.#wait();
    }
  }

  #start(): void {
    const { electorate, clock, nodeTimeoutMs } = this.#host;
    if (this.#isLed) {
      if (this.#isTry) {
        this.#schedule(clock.now() + nodeTimeoutMs); // whoever is before it has its answers by then
      }
      return;
    }
    if (electorate.isReady) {
      this.#open();
      return;
    }
    electorate.ready().then(
      () => {
        this.#open();
      },
      (error: unknown) => {
        this.#unready(error);
      },
    );
  }

  /** @param token of an earlier attempt of the same name, which this one joins */
  #open(token?: string): void {
    if (this.#isSettled || this.#bid) {
      return;
    }
    const { electorate } = this.#host;
    try {
      electorate.refuseTwins();
    } catch (error) {
      this.#fail(error);
      return;
    }
    const bid = new Bid(this.#host, this, {
      wanted: this.#request,
      token: token ?? this.#host.tokenFor(this.#request, this.#ticket(electorate)),
      isRepeat: token !== undefined,
      passing: this.#passing,
    });
    this.#bid = bid;
    this.#hasJoined = token !== undefined;
    this.#host.opened(bid);
    bid.askAll();
  }

  #unready(error: unknown): void {
    if (this.#isSettled) {
      return;
    }
    this.#lastError = error;
    if (error instanceof LockError && !error.retryable) {
      this.#fail(aboutKey(error, this.key));
      return;
    }
    this.#meetingFailures += 1;
    this.#schedule(this.#host.clock.now() + backoffDelay(this.#host.random, this.#meetingFailures));
  }

  #askAgain(bid: Bid, now: number): void {
    if (now >= this.#split.askAgainAt) {
      const timesSplit = this.#split.askAgain();
      if (timesSplit % 2 === 0 && bid.hasDeafVotes && !this.#host.isHeld(bid.token)) {
        // Who cannot be asked gives its votes back by itself, and settles with its rivals by chance. Those of an earlier attempt are
        // not ours to give back: they end by themselves, unless they are prolonged by asking.
        const delayMs = this.#hasJoined
          ? keptForMs(this.ttlMs, this.#host.driftFactor)
          : backoffDelay(this.#host.random, Math.min(timesSplit, 3));
        this.#drop();
        this.#schedule(now + delayMs);
        return;
      }
      bid.askAll();
    } else {
      bid.askDue();
    }
    this.#wait();
  }

  /** Fresh tokens of one request keep its place; those of an attempt with a name differ by nothing else. */
  #ticket(electorate: Electorate): number {
    if (this.#place === undefined || this.attemptId !== undefined) {
      this.#place =
        this.#place === undefined ? (this.#request.ticket ?? electorate.ticket()) : electorate.ticket();
    }
    return this.#place;
  }

  /** Not elected: goes on waiting for answers and messages, unless the nodes say that it is in vain. */
  #wait(): void {
    const bid = this.#bid;
    if (!bid || this.#isSettled) {
      return;
    }
    if (bid.isUncontested || !this.#endsInVain(bid)) {
      this.#split.observe(bid.hasVotes);
      this.#schedule(Math.min(bid.dueAt, this.#split.askAgainAt));
    }
  }

  /** Whether what the nodes have said ends this bid. */
  #endsInVain(bid: Bid): boolean {
    const { ballots } = bid;
    const { majority, voters } = this.#host.electorate;
    if (this.#isSettling && rivalsShare(ballots) >= majority) {
      this.#finishTry();
      return true;
    }
    if (this.#joinsEarlier(bid)) {
      return true;
    }
    const refusal = refusalOf(bid, this.key);
    if (refusal !== undefined) {
      this.#fail(refusal);
      return true;
    }
    if (ballots.filter(({ answer }) => answer === "full").length > voters.length - majority) {
      this.#fail(queueFullError(this.key));
      return true;
    }
    if (!this.#wasQueued && ballots.some(({ position }) => position !== undefined)) {
      this.#wasQueued = true;
      tell("queued", () => ({ key: this.key, position: positionIn(ballots) }));
    }
    return false;
  }

  /** Where the nodes have the tokens of several requests for this attempt it goes on with the earliest. */
  #joinsEarlier(bid: Bid): boolean {
    const earlier = bid.earlierAttempt();
    if (earlier !== undefined) {
      this.#drop("release"); // whoever claimed it goes on with the earlier one, too
      this.#open(earlier);
    }
    return earlier !== undefined;
  }

  #judgeTry(): void {
    const bid = this.#bid as Bid;
    if (this.#joinsEarlier(bid)) {
      return;
    }
    switch (verdictOnTry(bid.ballots, this.#host.electorate.majority)) {
      case "held":
        this.#finishTry();
        break;
      case "split":
        this.#settleTry();
        break;
      case "unheard":
        this.#fail(refusalOf(bid, this.key) ?? this.#failure());
        break;
      case "open":
    }
  }

  /** Nobody has a majority: the rivals are settled by their places, as if they had waited. */
  #settleTry(): void {
    const { clock, nodeTimeoutMs } = this.#host;
    const bid = this.#bid as Bid;
    this.#isSettling = true;
    this.#deadline = Math.min(this.#deadline, clock.now() + nodeTimeoutMs);
    bid.waits = true;
    bid.askAll();
    this.#wait();
  }

  #finishTry(): void {
    this.#abandon("settled");
    this.#resolve({ outcome: "held" });
  }

  #timeOut(): void {
    if (this.#isSettling || (this.#isTry && this.isHeard && !this.#bid)) {
      this.#finishTry();
    } else if (!this.isHeard || this.#isTry) {
      this.#fail(this.#failure());
    } else {
      const position = positionIn(this.#seen?.ballots ?? []);
      this.#abandon();
      void this.#resolveHeld(position);
    }
  }

  async #resolveHeld(position: number | undefined): Promise<void> {
    this.#resolve(await farewell(this.#host, this.key, position));
  }

  #failure(): unknown {
    const bid = this.#seen;
    return bid || this.#lastError === undefined
      ? noQuorum(this.#host.electorate, this.key, bid)
      : aboutKey(this.#lastError, this.key);
  }

  #schedule(at: number): void {
    this.#host.agenda.schedule(this, Math.min(at, this.#deadline));
  }

  #fail(error: unknown): void {
    this.#abandon();
    this.#reject(error);
  }

  /**
   * Gives up. With a caller's own attempt and an unknown outcome a repeat is to find what it left, unless the caller is told for
   * certain that he has nothing.
   */
  #abandon(outcome: "settled" | "open" = "open"): void {
    this.#settle();
    this.#passing?.releaseUnanswered(this.#bid?.ballots ?? []);
    this.#drop(undefined, outcome === "settled");
    this.#passing?.abandoned();
  }

  #drop(name?: "release", isCertain = false): void {
    const bid = this.#bid;
    if (bid) {
      this.#wasHeard = this.isHeard;
      bid.close();
      const isUnknown = this.#isSettled && this.attemptId !== undefined && bid.outcome === "unknown";
      const isClaimable = this.#hasJoined || (isUnknown && !isCertain);
      this.#host.abandoned(bid, isClaimable, name);
      this.#bid = undefined;
    }
  }

  #settle(): void {
    this.#isSettled = true;
    this.#host.agenda.cancel(this);
    this.#host.settled(this);
  }
}

const alreadyReleased = Promise.resolve(true);
