import { tell } from "../../../diagnostics.ts";
import type { Acquired, AcquireRequest, Pending } from "../../../driver.ts";
import { closedError, LockError } from "../../../errors.ts";
import { nowhere, type Pooled } from "../../../runtime/unordered-set.ts";
import { backoffMs } from "../../../runtime/random.ts";
import type { Timed } from "../../../runtime/timer-queue.ts";
import { farewell } from "../server/timed-out.ts";
import type { LockKeys } from "../protocol/keys.ts";
import { Bid, type BidRequest, type Election } from "./majority-attempt.ts";
import type { Electorate } from "./node-set.ts";
import { aboutKey, noQuorum, refusalOf } from "./quorum-error.ts";
import type { QuorumHost } from "./request-host.ts";
import { Split } from "./split-vote-timer.ts";
import { tellElection } from "./counted-votes.ts";
import { positionIn, verdictOnTry } from "./majority-verdict.ts";

/**
 * One request for a lock on N nodes: its bid is repeated until it is elected, cancelled, or its time is over. A try asks once;
 * where the answers show that nobody has a majority, rivals tried at the same moment: it then waits its turn for one node timeout.
 */
export class QuorumRequest implements Pending, Pooled, Timed, BidRequest {
  dueAt = 0;
  slot = -1;
  place: number = nowhere;
  readonly keys: LockKeys;
  readonly key: string;
  readonly ttlMs: number;
  /** When it stops waiting, on the scale of `clock.now()`. */
  deadline: number;
  /** The one that is under way. */
  bid: Bid | undefined;
  readonly result: Promise<Acquired>;
  readonly #host: QuorumHost;
  readonly #request: AcquireRequest;
  readonly #isPastBound: boolean;
  /** In the queues. */
  #place: number | undefined;
  /** Of the nodes' time by which the place, and the deadline in the queues, are written. */
  #era: number | undefined;
  #isSettled = false;
  #isSettling = false;
  #wasHeard = false;
  #wasQueued = false;
  readonly #split: Split;
  #meetingFailures = 0;
  #lastError: unknown;
  #resolve!: (acquired: Acquired) => void;
  #reject!: (reason: unknown) => void;

  /** @param isPastBound the bound of the queues does not apply, because a grant is given up with this request */
  constructor(host: QuorumHost, request: AcquireRequest, keys: LockKeys, isPastBound = false) {
    this.#host = host;
    this.#request = request;
    this.keys = keys;
    this.key = request.key;
    this.ttlMs = request.ttlMs;
    this.#isPastBound = isPastBound;
    this.#split = new Split(host, request.ttlMs);
    this.deadline = request.deadline ?? host.clock.now() + host.commandTimeoutMs;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  get #isTry(): boolean {
    return this.#request.deadline === null;
  }

  begin(): void {
    this.#host.agenda.schedule(this, this.deadline);
    this.#start();
  }

  /** Most nodes have answered, or may still answer as they did before. */
  get isHeard(): boolean {
    return this.bid?.isAnswered(this.#wasHeard) ?? this.#wasHeard;
  }

  /** Its moment has come: the deadline, or to ask again. */
  wake(): void {
    const now = this.#host.clock.now();
    if (now >= this.deadline) {
      this.#timeOut();
    } else if (!this.bid) {
      this.#host.agenda.schedule(this, this.deadline);
      this.#start();
    } else {
      this.#askAgain(this.bid, now);
    }
  }

  /** A node's messages reach us (again). */
  askNode(index: number): void {
    const ballot = this.bid?.ballots[index];
    if (ballot && !this.#isSettled && !this.#isTry) {
      ballot.ask();
    }
  }

  /** A node may vote that might not. */
  reconsider(): void {
    this.bid?.reconsider();
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
    const bid = this.bid as Bid;
    this.#settle();
    const grant = this.#host.holdings.elected(bid, this, election);
    tellElection(grant, election, bid);
    this.#resolve({ outcome: "granted", grant });
  }

  /** Another process has our tokens. */
  cloned(): void {
    if (this.bid) {
      this.undecided();
    }
  }

  /** With a fresh token. In the same place, unless the nodes' time is another than the one by which that was written. */
  undecided(): void {
    this.#drop();
    this.#open();
  }

  heard(): void {
    if (this.#era !== this.#host.electorate.era) {
      this.undecided();
    } else if (this.#isTry && !this.#isSettling) {
      this.#judgeTry();
    } else {
      this.#wait();
    }
  }

  #start(): void {
    const { electorate } = this.#host;
    if (electorate.isReady) {
      this.#open();
      return;
    }
    electorate.ready().then(
      () => this.#open(),
      (error: unknown) => this.#unready(error),
    );
  }

  /** With a fresh token: one that was given up is never asked for again. */
  #open(): void {
    if (this.#isSettled || this.bid) {
      return;
    }
    const { electorate } = this.#host;
    try {
      electorate.refuseTwins();
    } catch (error) {
      this.#fail(error);
      return;
    }
    this.bid = new Bid(this.#host, this, {
      wanted: this.#request,
      token: this.#host.tokenFor(this.#request, this.#ticket(electorate)),
      isPastBound: this.#isPastBound,
    });
    this.bid.waits ||= this.#isSettling;
    this.#host.holdings.opened(this.bid);
    this.bid.askAll();
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
    this.#schedule(this.#host.clock.now() + backoffMs(this.#host.random, this.#meetingFailures));
  }

  #askAgain(bid: Bid, now: number): void {
    if (now >= this.#split.askAgainAt) {
      this.#split.askAgain();
      if (this.#split.isPauseDue && bid.hasDeafVotes) {
        // Who cannot be asked gives its votes back by itself, and settles with its rivals by chance.
        const pauseMs = this.#split.pauseMs;
        this.#drop();
        this.#schedule(now + pauseMs);
        return;
      }
      bid.askAll();
    } else {
      bid.askDue();
    }
    this.#wait();
  }

  /** Fresh tokens of one request keep its place in one era. */
  #ticket(electorate: Electorate): number {
    const { era } = electorate;
    if (this.#place === undefined) {
      this.#place = this.#request.ticket ?? electorate.ticket();
    } else if (era !== this.#era) {
      this.#place = electorate.ticket();
    }
    this.#era = era;
    return this.#place;
  }

  /** Not elected: goes on waiting for answers and messages, unless the nodes say that it is in vain. */
  #wait(): void {
    const bid = this.bid;
    if (!bid || this.#isSettled) {
      return;
    }
    if (bid.isUncontested || !this.#endsInVain(bid)) {
      this.#split.observe(bid.isSplit);
      this.#schedule(Math.min(bid.dueAt, this.#split.askAgainAt));
    }
  }

  /** Whether what the nodes have said ends this bid. */
  #endsInVain(bid: Bid): boolean {
    const { ballots } = bid;
    if (this.#isSettling && verdictOnTry(ballots, bid.electorate.majority) === "held") {
      this.#finishTry();
      return true;
    }
    const refusal = refusalOf(bid, this.key);
    if (refusal !== undefined) {
      this.#fail(refusal);
      return true;
    }
    if (!this.#wasQueued && ballots.some(({ position }) => position !== undefined)) {
      this.#wasQueued = true;
      tell("queued", () => ({ key: this.key, position: positionIn(ballots) }));
    }
    return false;
  }

  #judgeTry(): void {
    const bid = this.bid as Bid;
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
    const bid = this.bid as Bid;
    this.#isSettling = true;
    this.deadline = Math.min(this.deadline, clock.now() + nodeTimeoutMs);
    bid.waits = true;
    bid.askAll();
    this.#wait();
  }

  #finishTry(): void {
    this.#abandon();
    this.#resolve({ outcome: "held" });
  }

  #timeOut(): void {
    if (this.#isSettling) {
      this.#finishTry();
    } else if (!this.isHeard || this.#isTry) {
      this.#fail(this.#failure());
    } else {
      const position = positionIn(this.bid?.ballots ?? []);
      this.#abandon();
      void farewell(this.#host, this.#request, position).then(this.#resolve);
    }
  }

  #failure(): unknown {
    const { bid } = this;
    return bid || this.#lastError === undefined
      ? noQuorum(this.#host.electorate, this.key, bid)
      : aboutKey(this.#lastError, this.key);
  }

  #schedule(at: number): void {
    this.#host.agenda.schedule(this, Math.min(at, this.deadline));
  }

  #fail(error: unknown): void {
    this.#abandon();
    this.#reject(error);
  }

  /** Gives up: what the nodes may have of it is taken back. */
  #abandon(): void {
    this.#settle();
    this.#drop();
  }

  #drop(): void {
    const { bid } = this;
    if (bid) {
      this.#wasHeard = this.isHeard;
      bid.close();
      this.#host.holdings.abandoned(bid);
      this.bid = undefined;
    }
  }

  #settle(): void {
    this.#isSettled = true;
    this.#host.agenda.cancel(this);
    this.#host.settled(this);
  }
}
