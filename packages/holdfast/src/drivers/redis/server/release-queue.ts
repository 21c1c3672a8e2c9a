import type { Clock, Moment } from "../../../runtime/clock.ts";
import { tell } from "../../../diagnostics.ts";
import { closedError } from "../../../errors.ts";
import { backoffMs, type Random } from "../../../runtime/random.ts";
import { TimerQueue, type Timed } from "../../../runtime/timer-queue.ts";
import { engineError, isTransient, outcomeOf, refusalBy, timeoutError } from "./errors.ts";
import { GrantsInUse, type Use } from "./grants-in-use.ts";
import type { LockKeys } from "../protocol/keys.ts";
import type { Node } from "./server.ts";
import { withCandidate, type Operation, type Reply } from "../protocol/operation.ts";
import { lateMs } from "./poll-delays.ts";

const longestBackoffMs = 2_000;
/** A server keeps a queue for so long after its last change, and in it the place of who waits without end. */
const queueMs = 60_000;

/** When a server has forgotten a place in its queue by itself: of who waits until that deadline. */
export function placeUntil(now: number, deadline: number): number {
  return deadline === Infinity ? now + queueMs : deadline;
}

/** What is to be taken back from the server: a grant, a place in the queue, or whatever an unanswered request left there. */
export interface Leftover {
  readonly key: string;
  readonly keys: LockKeys;
  readonly token: string;
  /** What our queue member says after the token; "" where we have no place there. */
  readonly terms: string;
  /** Of a quorum's node: the fencing number of who is granted the lock by this. */
  readonly candidate?: string | undefined;
  /** Of one server: the token was made here, so the answer may name the next holder of this client instead of a message. */
  readonly isOwn?: boolean | undefined;
  /** When the server will have forgotten it by itself, on the scale of `clock.now()`. */
  readonly until: number;
  /** The latest server time, ms, at which a request for it may still be carried out; absent or 0: none is under way. */
  readonly latest?: number | undefined;
}

/** What a node is told to take a leftover back. */
export function takingBack({ token, terms, candidate, isOwn }: Leftover, name: Giving): readonly string[] {
  if (candidate !== undefined) {
    return withCandidate([name, token, terms], candidate);
  }
  return name === "release" ? [name, token, terms, isOwn === true ? "1" : "0"] : [name, token, terms];
}

/** The grant of a request of this client, to which a release has handed the lock over. */
export interface HandedOver {
  readonly token: string;
  readonly first: number;
  readonly last: number;
  readonly ttlMs: number;
}

/** `downgrade`: what of a writer a reader does not need. */
export type Giving = "release" | "downgrade";

/** Who waits for a release. */
export interface ReleaseListener {
  /**
   * Behind {@link failed}, too, as it goes on.
   * @param isPlain the server itself said that it released
   */
  released(wasReleased: boolean, isPlain: boolean): void;
  /** No answer in time, or none that could come by itself. */
  failed(error: unknown): void;
}

/**
 * Decides for one server what must hold nothing there from now on: what was released or given up, and what the server tells of that is
 * not in use. Releases it, and goes on until the server has answered behind all requests for it, or has forgotten by itself.
 */
export class Releaser {
  readonly inUse: GrantsInUse;
  readonly #nodeOf: (keys: LockKeys) => Node;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #budgetMs: number;
  /** Tells of the next holder of this client that a release answered. */
  readonly handedOver: (grant: HandedOver, sent: Moment) => void;
  /** Tells whom a quorum's node votes for behind a release; "": nobody, or it is not known. */
  readonly votedFor: (token: string) => void;
  readonly #agenda: TimerQueue<Release>;
  /** Who waits for an answer, whatever is sent meanwhile. */
  readonly #patience: TimerQueue<Patience>;
  #isClosed = false;
  readonly #underWay = new Set<Promise<unknown>>();
  /** The latest one of each token, while it goes on; the earlier ones follow as {@link Release.earlier}. */
  readonly #open = new Map<string, Release>();

  constructor(
    nodeOf: (keys: LockKeys) => Node,
    clock: Clock,
    random: Random,
    budgetMs: number,
    handedOver: (grant: HandedOver, sent: Moment) => void = () => undefined,
    votedFor: (token: string) => void = () => undefined,
  ) {
    this.handedOver = handedOver;
    this.votedFor = votedFor;
    this.inUse = new GrantsInUse(clock);
    this.#nodeOf = nodeOf;
    this.#clock = clock;
    this.#random = random;
    this.#budgetMs = budgetMs;
    this.#agenda = new TimerQueue(clock, (release) => this.send(release));
    this.#patience = new TimerQueue(clock, (patience) => this.#endPatience(patience));
  }

  /** @returns whether it was still ours; rejects with an `EngineError` after the budget and goes on in the background */
  release(leftover: Leftover): Promise<boolean> {
    const latest = this.inUse.end(leftover.token);
    return this.#promised({ ...leftover, latest }, "release");
  }

  downgrade(leftover: Leftover): Promise<boolean> {
    return this.#promised(leftover, "downgrade");
  }

  #promised(leftover: Leftover, name: Giving): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.begin(leftover, { released: resolve, failed: reject }, name);
    });
  }

  /**
   * The server has told of a grant, or of a place, for which nobody waits.
   * @param use of the request that it was told, where it is a grant
   */
  toldLate(leftover: Leftover, use?: Use): void {
    if (use?.isOver !== false && !this.inUse.has(leftover.token)) {
      this.takeBack(leftover);
    }
  }

  /** The same, where a promise for each node would be many. @param args what the node is told, where several are told the same */
  begin(
    leftover: Leftover,
    listener: ReleaseListener,
    name: Giving = "release",
    args: readonly string[] = takingBack(leftover, name),
  ): void {
    this.#begin(new Release(this, name, args, leftover, listener));
  }

  #begin(release: Release): void {
    const { token, keys, until, latest = 0 } = release.leftover;
    const lateMs = latest - this.#nodeOf(keys).time.micros() / 1000;
    release.until = until + (latest > 0 ? Math.max(0, lateMs) : 0); // what comes so late lasts as long
    release.earlier = this.#open.get(token);
    this.#open.set(token, release);
    this.#patience.schedule(release.patience, this.#clock.now() + this.#budgetMs);
    this.send(release);
  }

  /** It goes on, and who waits for it is told that it does. */
  #endPatience(patience: Patience): void {
    const { release, dueAt } = patience;
    const now = this.#clock.now();
    if (now - dueAt > lateMs && !patience.isGraced) {
      patience.isGraced = true; // once: a busy process may always be late
      this.#patience.schedule(patience, now + lateMs); // the process was late: the answer may have arrived unread
      return;
    }
    const { error = timeoutError(this.#budgetMs), leftover, listener } = release;
    listener.failed(engineError(error, leftover.key, "unknown"));
  }

  /** The token is asked for again: what was to take it back and got no answer yet must not come behind that. */
  keep(token: string): void {
    for (let release = this.#open.get(token); release; release = release.earlier) {
      if (release.isCleanup) {
        this.ended(release);
        release.tell(false, false);
      }
    }
  }

  /** The same for something that nobody waits for. */
  takeBack(leftover: Leftover): void {
    const done = new Promise<boolean>((resolve, reject) => {
      const args = takingBack(leftover, "release");
      const listener = { released: resolve, failed: reject };
      const release = new Release(this, "release", args, leftover, listener);
      release.isCleanup = true;
      this.#begin(release);
    }).catch((error: unknown) => {
      tell("node", () => ({
        node: this.#nodeOf(leftover.keys).connection.name,
        event: "release-delayed",
        detail: String(error),
      }));
    });
    this.#underWay.add(done);
    void done.then(() => this.#underWay.delete(done));
  }

  /** The server says that this one released: the other releases of its token find nothing, but the grant was ours when they began. */
  found({ leftover: { token } }: Release): void {
    for (let release = this.#open.get(token); release; release = release.earlier) {
      release.wasFound = true;
    }
  }

  /** The server has answered, or has forgotten by itself. */
  ended(release: Release): void {
    release.isEnded = true;
    this.#agenda.cancel(release); // the answer may have come late, to a question that was to be repeated
    this.#patience.cancel(release.patience);
    const { token } = release.leftover;
    const latest = this.#open.get(token);
    if (latest !== release) {
      for (let later = latest; later; later = later.earlier) {
        if (later.earlier === release) {
          later.earlier = release.earlier;
        }
      }
    } else if (release.earlier) {
      this.#open.set(token, release.earlier);
    } else {
      this.#open.delete(token);
    }
  }

  /** What nobody waits for is answered, or was tried for its budget. */
  async idle(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  close(): void {
    this.#isClosed = true;
    this.inUse.close();
    for (const release of Array.from(this.#agenda.items())) {
      this.#gaveUp(release, closedError(release.leftover.key));
    }
  }

  send(release: Release): void {
    const node = this.#nodeOf(release.keys);
    if (node.isKnown) {
      node.perform(release);
    } else {
      node.meet().then(
        () => {
          if (!release.isEnded) {
            node.perform(release);
          }
        },
        (error: unknown) => release.failed(error),
      );
    }
  }

  /** The node answers again: what failed goes out again. */
  revived(node: Node): void {
    for (const release of Array.from(this.#agenda.items())) {
      if (release.failures > 0 && this.#nodeOf(release.keys) === node) {
        this.#agenda.cancel(release);
        this.send(release);
      }
    }
  }

  /** No answer came: tried again until the server has forgotten by itself. */
  retry(release: Release, error: unknown): void {
    const now = this.#clock.now();
    const goesOn = isTransient(error) && now < release.until && !this.#isClosed;
    if (goesOn) {
      this.#agenda.schedule(release, now + backoffMs(this.#random, release.failures, longestBackoffMs));
    } else {
      this.#gaveUp(release, engineError(error, release.leftover.key, "unknown"));
    }
  }

  /**
   * The server has released. A request for the same token may still be carried out: then it is released once more, behind the latest
   * time of that.
   */
  answered(release: Release, serverMicros: number): void {
    const now = this.#clock.now();
    const lateMs = (release.leftover.latest ?? 0) - serverMicros / 1000;
    if (lateMs < 0 || now >= release.until || release.isEnded || this.#isClosed) {
      this.ended(release);
    } else {
      this.#patience.cancel(release.patience);
      release.isCleanup = true;
      release.failures = 0;
      this.#agenda.schedule(release, Math.min(now + lateMs + 1, release.until));
    }
  }

  #gaveUp(release: Release, error: unknown): void {
    this.ended(release);
    if (!release.isTold) {
      release.listener.failed(error);
    }
  }
}

class Release implements Operation, Timed {
  dueAt = 0;
  slot = -1;
  failures = 0;
  readonly leftover: Leftover;
  /** When the server will have forgotten, on the scale of `clock.now()`. */
  until = 0;
  readonly patience: Patience = new Patience(this);
  /** How it failed last. */
  error: unknown;
  readonly args: readonly string[];
  readonly listener: ReleaseListener;
  readonly #releaser: Releaser;
  readonly #givesBack: boolean;
  /** Nobody waits for it: a request takes back what its own repeats left. */
  isCleanup = false;
  /** The release of the same token that began before this one. */
  earlier: Release | undefined;
  /** Another release of the token found the grant. */
  wasFound = false;
  #wasReleased = false;
  /** It may have been carried out by a server that did not answer. */
  #isUncertain = false;
  /** Its listener has the outcome. */
  isTold = false;
  /** It is not sent again. */
  isEnded = false;

  constructor(
    releaser: Releaser,
    name: Giving,
    args: readonly string[],
    leftover: Leftover,
    listener: ReleaseListener,
  ) {
    this.#releaser = releaser;
    this.leftover = leftover;
    this.#givesBack = name !== "downgrade";
    this.args = args;
    this.listener = listener;
  }

  get keys(): LockKeys {
    return this.leftover.keys;
  }

  answered({ value, isSteady, sent, serverMicros }: Reply): void {
    // Of a usual release 1: it was ours, and nothing is left.
    const [released, more, token, first, last, ttlMs] = Array.isArray(value)
      ? (value as unknown[])
      : [value, 0];
    if (released === "error") {
      this.failed(refusalBy(String(more)));
      return;
    }
    if (Number(released) === 1) {
      this.#wasReleased = true;
      this.#releaser.found(this);
    }
    if (ttlMs !== undefined) {
      const grant = { token: String(token), first: Number(first), last: Number(last), ttlMs: Number(ttlMs) };
      this.#releaser.handedOver(grant, sent);
    } else if (typeof token === "string") {
      this.#releaser.votedFor(token);
    }
    if (Number(more) === 1 && !this.isEnded) {
      this.#releaser.send(this); // dead waiters are left to be passed over
      return;
    }
    this.#releaser.answered(this, serverMicros);
    // A repeat, of ours or by the client library, finds that the attempt whose answer was lost has released: it was sent while the
    // grant was ours.
    const isRepeat = this.#isUncertain || !isSteady;
    const wasOurs = this.#wasReleased || (this.#givesBack && (isRepeat || this.wasFound));
    this.tell(wasOurs, this.#wasReleased);
  }

  tell(wasReleased: boolean, isPlain: boolean): void {
    if (!this.isTold) {
      this.isTold = true;
      this.listener.released(wasReleased, isPlain);
    }
  }

  failed(error: unknown): void {
    if (!this.isEnded) {
      this.failures += 1;
      this.error = error;
      this.#isUncertain ||= outcomeOf(error) === "unknown";
      this.#releaser.retry(this, error);
    }
  }
}

/** Until when a release is waited for. */
class Patience implements Timed {
  dueAt = 0;
  slot = -1;
  isGraced = false;
  readonly release: Release;

  constructor(release: Release) {
    this.release = release;
  }
}
