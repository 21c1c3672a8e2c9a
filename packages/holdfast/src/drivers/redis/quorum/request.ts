import type { Clock } from "../../../clock.ts";
import { tell } from "../../../diagnostics.ts";
import type { Acquired, AcquireRequest, Grant, Requeued } from "../../../driver.ts";
import { closedError, LockError, QuorumError } from "../../../errors.ts";
import { jittered, type Random } from "../../../random.ts";
import type { Holder } from "../../../state.ts";
import { nowhere, type Pooled } from "../../../pool.ts";
import type { Timed, TimerQueue } from "../../../timer-queue.ts";
import { engineEnd } from "../../../validity.ts";
import { within } from "../../../wait.ts";
import { expiryMs, type Ballot, type Vote } from "./ballot.ts";
import { Bid, type BidListener, type Election } from "./bid.ts";
import { mostApartMs, type Electorate } from "./electorate.ts";
import { engineError, queueFullError } from "../failures.ts";
import { GivingUp } from "../giving-up.ts";
import type { LockKeys } from "../keys.ts";
import { backoffDelay } from "../pacing.ts";
import type { QuorumHold } from "./hold.ts";
import { QuorumRelease } from "./release.ts";
import { encodeWords } from "../words.ts";

/** How much longer than its deadline a waiter takes to say who holds the lock. */
const longestFarewellMs = 250;
/** While it has some votes, which others may be waiting for, it asks again this soon. */
const shortestSplitMs = 250;
const longestSplitMs = 2_000;

/** What a request needs of its driver. */
export interface QuorumHost {
  readonly electorate: Electorate;
  readonly clock: Clock;
  readonly random: Random;
  readonly agenda: TimerQueue<QuorumRequest>;
  readonly commandTimeoutMs: number;
  readonly nodeTimeoutMs: number;
  readonly claimMs: number;
  readonly driftFactor: number;
  /** A token for an attempt; what is heard of it goes to that bid from then on. */
  tokenFor(request: AcquireRequest, ticket: number): string;
  opened(bid: Bid, request: QuorumRequest): void;
  /** The bid is over without a grant: what the nodes may have of it is taken back, or is left for a repeat to claim. */
  abandoned(bid: Bid, request: QuorumRequest, isClaimable: boolean, name?: "release" | "recant"): void;
  /** The bid won: the votes are one grant from now on. @returns the grant's fencing number */
  elected(bid: Bid, request: QuorumRequest, election: Election): number;
  settled(request: QuorumRequest): void;
  /** A lease of this process stood on it, and was given back. */
  isReleased(token: string): boolean;
  /** A node still has what was given back. */
  takeBackReleased(request: QuorumRequest, ballot: Ballot, token: string): void;
  /** A lease of this process stands on it: a repeat that joins it may not give its votes back, nor let them expire. */
  isHeld(token: string): boolean;
  /** Of the requests for one named attempt the one that asks the nodes. */
  leaderOf(request: QuorumRequest): QuorumRequest | undefined;
  /** A node has something of a bid that it cannot vote for. */
  givenBack(bid: Bid, request: QuorumRequest, ballot: Ballot): void;
  /** A node has something of a bid that is over. */
  leftBehind(bid: Bid, request: QuorumRequest, ballot: Ballot, vote: Vote | undefined): void;
  holderOf(key: string): Promise<Holder | undefined>;
}

/** A grant that is given up by being passed on. */
export interface Given {
  readonly grant: Grant;
  readonly hold: QuorumHold;
}

/**
 * One request for a lock on N nodes: its bid is repeated until it is elected, cancelled, or its time is over. A try asks once;
 * where the answers show that nobody has a majority, rivals tried at the same moment: it then waits its turn for one node timeout.
 */
export class QuorumRequest implements Requeued, Pooled, Timed, BidListener {
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
  readonly #given: Given | undefined;
  readonly #givingUp: GivingUp | undefined;
  readonly #since: number;
  #deadline: number;
  #bid: Bid | undefined;
  /** The token is an earlier attempt's of the same name: not ours to take back. */
  #hasJoined = false;
  #place: number | undefined;
  #isSettled = false;
  #isSettling = false;
  #wasHeard = false;
  #wasQueued = false;
  #splits = 0;
  #splitAt = Infinity;
  /** By node: whether it still had the grant that is given up. */
  readonly #gaveUp = new Map<number, boolean>();
  #meetingFailures = 0;
  #lastError: unknown;
  #resolve!: (acquired: Acquired) => void;
  #reject!: (reason: unknown) => void;

  /** @param given a grant that is given up in the same step */
  constructor(host: QuorumHost, request: AcquireRequest, keys: LockKeys, given?: Given) {
    this.#host = host;
    this.#request = request;
    this.keys = keys;
    this.key = request.key;
    this.ttlMs = request.ttlMs;
    this.attemptId = request.attemptId;
    this.#given = given;
    this.#since = host.clock.now();
    this.#deadline = request.deadline ?? this.#since + host.commandTimeoutMs;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#givingUp =
      given &&
      new GivingUp({
        clock: host.clock,
        release: () => {
          const release = new QuorumRelease(host.electorate, given.hold);
          release.begin(engineEnd(given.grant.validity));
          return release.result;
        },
        patienceMs: host.commandTimeoutMs,
      });
    this.released = this.#givingUp?.released ?? alreadyReleased;
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
    for (const ballot of bid.ballots) {
      if (ballot.isUnanswered) {
        this.#releaseGivenOn(ballot);
      }
    }
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

  gaveUp(ballot: Ballot, released: boolean, isPlain: boolean): void {
    if (!isPlain) {
      this.#releaseGivenOn(ballot); // it was not ours there, or had a place in the queue at the most
    }
    const { index } = ballot.voter;
    this.#gaveUp.set(index, released || this.#gaveUp.get(index) === true);
    const { majority, voters } = this.#host.electorate;
    const answers = [...this.#gaveUp.values()];
    const wasOurs = answers.filter((answer) => answer).length;
    if (wasOurs >= majority) {
      this.#givingUp?.answered(true);
    } else if (answers.length - wasOurs > voters.length - majority) {
      this.#givingUp?.answered(false);
    }
  }

  isReleased(token: string): boolean {
    return this.#host.isReleased(token);
  }

  takeBackReleased(ballot: Ballot, token: string): void {
    this.#host.takeBackReleased(this, ballot, token);
  }

  giveBack(bid: Bid, ballot: Ballot): void {
    this.#host.givenBack(bid, this, ballot);
  }

  passedOver(ballot: Ballot): void {
    this.#releaseGivenOn(ballot);
    ballot.hasPassedOn = true;
  }

  failedTooLate(ballot: Ballot): void {
    this.#releaseGivenOn(ballot);
  }

  heardTooLate(bid: Bid, ballot: Ballot, vote: Vote | undefined): void {
    this.#host.leftBehind(bid, this, ballot, vote);
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
    const { electorate, clock, random, driftFactor, nodeTimeoutMs, claimMs } = this.#host;
    try {
      electorate.refuseTwins();
    } catch (error) {
      this.#fail(error);
      return;
    }
    const { ttlMs, want, words } = this.#request;
    const leftMs = this.#deadline - clock.now();
    // A node's clock may be ahead of the median: it must not pass over who still waits.
    const deadline = leftMs === Infinity ? 0 : Math.ceil(electorate.micros() / 1000 + leftMs + mostApartMs);
    const bid = new Bid(
      {
        electorate,
        clock,
        random,
        driftFactor,
        nodeTimeoutMs,
        keys: this.keys,
        token: token ?? this.#host.tokenFor(this.#request, this.#ticket(electorate)),
        ttlMs,
        want,
        words: encodeWords(words),
        member: `${Math.min(ttlMs, claimMs)} ${want} ${deadline}`,
        gives: this.#given?.hold.token,
        isRepeat: token !== undefined,
        listener: this,
      },
      !this.#isTry,
    );
    this.#bid = bid;
    this.#hasJoined = token !== undefined;
    this.#host.opened(bid, this);
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
    if (now >= this.#splitAt) {
      this.#splitAt = Infinity;
      this.#splits += 1;
      if (this.#splits % 2 === 0 && bid.hasDeafVotes && !this.#host.isHeld(bid.token)) {
        // Who cannot be asked gives its votes back by itself, and settles with its rivals by chance. Those of an earlier attempt are
        // not ours to give back: they end by themselves, unless they are prolonged by asking.
        const delayMs = this.#hasJoined
          ? this.ttlMs * (1 + this.#host.driftFactor) + expiryMs
          : backoffDelay(this.#host.random, Math.min(this.#splits, 3));
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
      this.#keepSplitTime(bid);
      this.#schedule(Math.min(bid.dueAt, this.#splitAt));
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
    const hopeless = ballots.filter(({ isHopeless }) => isHopeless);
    if (hopeless.length > voters.length - majority) {
      this.#fail(engineErrorOf(hopeless, this.#quorumError(false)));
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

  /** Messages may be lost: while it has some votes and no majority it asks all nodes again. */
  #keepSplitTime(bid: Bid): void {
    if (!bid.hasVotes) {
      this.#splits = 0;
      this.#splitAt = Infinity;
    } else if (this.#splitAt === Infinity) {
      const { clock, random, claimMs } = this.#host;
      const delayMs = Math.min(
        longestSplitMs,
        shortestSplitMs * 2 ** Math.min(this.#splits, 3),
        Math.min(this.ttlMs, claimMs) / 3, // before the first of them is over, also of those that we were not told of
      );
      this.#splitAt = clock.now() + jittered(random, delayMs, 0.5);
    }
  }

  /** A try ends as soon as its majority is impossible, and it is known whether a rival has one. */
  #judgeTry(): void {
    const bid = this.#bid as Bid;
    const { ballots } = bid;
    const { majority } = this.#host.electorate;
    const pending = ballots.filter(({ isPending }) => isPending).length;
    const ours = ballots.filter(({ vote }) => vote !== undefined).length;
    const held = ballots.filter(({ answer }) => answer === "held").length;
    const rivals = rivalsShare(ballots);
    if ((pending === 0 && this.#joinsEarlier(bid)) || ours + pending >= majority) {
      return;
    }
    if (rivals >= majority) {
      this.#finishTry();
    } else if (pending === 0) {
      if (ours + held >= majority) {
        this.#settleTry();
      } else {
        const hopeless = ballots.filter(({ isHopeless }) => isHopeless);
        const isInVain = hopeless.length > ballots.length - majority;
        this.#fail(isInVain ? engineErrorOf(hopeless, this.#quorumError(false)) : this.#failure());
      }
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

  /** Asks who holds it behind our leaving of the queue. */
  async #resolveHeld(position: number | undefined): Promise<void> {
    const asked = this.#host.holderOf(this.key).catch(() => undefined);
    const holder = await within(this.#host.clock, longestFarewellMs, asked);
    this.#resolve({ outcome: "held", holder, position });
  }

  #failure(): unknown {
    return this.#seen || this.#lastError === undefined
      ? this.#quorumError(true)
      : aboutKey(this.#lastError, this.key);
  }

  #quorumError(retryable: boolean): QuorumError {
    const { electorate } = this.#host;
    const bid = this.#seen;
    const ballots = bid?.ballots ?? [];
    const votes = electorate.voters.map((voter, index) => {
      const ballot = ballots[index];
      return (
        ballot?.describe() ?? {
          node: voter.name,
          vote: "timeout" as const,
          latencyMs: null,
          reason: "not asked yet",
        }
      );
    });
    const outcome = bid?.outcome ?? "none";
    const cause = ballots.find(({ error }) => error !== undefined)?.error;
    const retryAfterMs = electorate.votesAgainInMs();
    return new QuorumError({ key: this.key, votes, outcome, retryable, retryAfterMs, cause });
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
    for (const ballot of this.#bid?.ballots ?? []) {
      if (ballot.isUnanswered) {
        this.#releaseGivenOn(ballot);
      }
    }
    this.#drop(undefined, outcome === "settled");
    this.#givingUp?.alone();
  }

  #drop(name?: "release", isCertain = false): void {
    const bid = this.#bid;
    if (bid) {
      this.#wasHeard = this.isHeard;
      bid.close();
      const isUnknown = this.#isSettled && this.attemptId !== undefined && bid.outcome === "unknown";
      const isClaimable = this.#hasJoined || (isUnknown && !isCertain);
      this.#host.abandoned(bid, this, isClaimable, name);
      this.#bid = undefined;
    }
  }

  /** A node that did not answer the passing on still has what was given up. */
  #releaseGivenOn({ voter, hasPassedOn }: Ballot): void {
    if (this.#given && !hasPassedOn && this.#given.hold.mayBeOn(voter)) {
      const { key, keys, token } = this.#given.hold;
      const terms = this.#given.hold.termsOn(voter);
      const until = this.#given.hold.forgottenAt(voter, engineEnd(this.#given.grant.validity));
      const candidate = this.#host.electorate.candidate();
      voter.releaser.takeBack({ key, keys, token, terms, until, candidate });
    }
  }

  #settle(): void {
    this.#isSettled = true;
    this.#host.agenda.cancel(this);
    this.#host.settled(this);
  }
}

const alreadyReleased = Promise.resolve(true);

/** How many nodes one rival has at the most. */
function rivalsShare(ballots: readonly Ballot[]): number {
  const shares = new Map<string, number>();
  for (const { answer, holder } of ballots) {
    if (answer === "held") {
      shares.set(holder, (shares.get(holder) ?? 0) + 1);
    }
  }
  return Math.max(0, ...shares.values());
}

/** Our place as most of the nodes that queued us have it. */
function positionIn(ballots: readonly Ballot[]): number | undefined {
  const positions = ballots.map(({ position }) => position).filter((position) => position !== undefined);
  return positions.sort((a, b) => a - b)[positions.length >> 1];
}

/** Of nodes that refuse for good: what is wrong where they all say the same of the key, else that there is no quorum. */
function engineErrorOf(hopeless: readonly Ballot[], quorumError: QuorumError): unknown {
  const error = engineError(hopeless[0]?.error, quorumError.key, "none");
  return error.code === "kind-mismatch" ? error : quorumError;
}

function aboutKey(error: unknown, key: string): unknown {
  return error instanceof QuorumError ? error.about(key) : error;
}
