import type { Findings } from "./findings.ts";
import { Life } from "./latch-life.ts";
import type { Seen, Sight } from "./latch-snapshot.ts";

/** One `Latch` of a caller, which stays with the latch that it met first. */
export interface View {
  readonly client: number;
  readonly count: number;
  readonly ttlMs: number;
  /** When it was used first. */
  readonly since: number;
  /** It is one of these; undefined: nobody knows yet. */
  lives: readonly Life[] | undefined;
}

/** A call under way, or one that may still be carried out. */
export interface Call {
  readonly view: View;
  /** That counts down; undefined: who waits. */
  readonly attempt: string | undefined;
  readonly askedAt: number;
  /** What was left then, of the latch that there was. */
  readonly leftBefore: ReadonlyMap<Life, number>;
  /** Its view had met no latch: it may begin one. */
  readonly mayBegin: boolean;
  isSettled: boolean;
  settledAt: number;
  /** Until when it may be carried out. */
  until: number;
}

/** What is promised of times, ms. */
export interface Terms {
  /** How long after it was asked, or after who waits was answered, a call may be carried out. */
  readonly latestMs: number;
  /** The engine forgets nothing. */
  readonly isKept: boolean;
  /** Who does not wait any more does not stand there. */
  readonly isTidy: boolean;
  /** From when on who waits is let go within so long of its end. */
  patience(): { readonly since: number; readonly ms: number };
}

/** Watches the latches of one key by what the engine has, and judges by that what callers are told. */
export class LatchHistory {
  readonly #findings: Findings;
  readonly #key: string;
  readonly #sight: Sight;
  readonly #terms: Terms;
  readonly #lives: Life[] = [];
  #calls: Call[] = [];

  constructor(findings: Findings, key: string, sight: Sight, terms: Terms) {
    this.#findings = findings;
    this.#key = key;
    this.#sight = sight;
    this.#terms = terms;
  }

  asks(view: View, attempt: string | undefined): Call {
    this.look();
    const call: Call = {
      view,
      attempt,
      askedAt: this.#findings.now,
      leftBefore: new Map(this.#lives.map((life) => [life, life.left])),
      mayBegin: view.lives === undefined,
      isSettled: false,
      settledAt: Infinity,
      until: Infinity,
    };
    this.#calls.push(call);
    return call;
  }

  /** It has counted, and so much is left. */
  counted(call: Call, left: number): void {
    this.#settled(call);
    const possible = this.#livesOf(call);
    const lives = possible.filter((life) => {
      return life.left <= left && left <= (call.leftBefore.get(life) ?? life.total);
    });
    const [life] = lives;
    if (lives.length === 1 && life) {
      life.proven.add(call.attempt as string);
    }
    if (!life) {
      const check = possible.length === 0 ? "latch" : "count";
      this.#complain(check, call, `was told that ${left} are left, as of no latch that it may have met`);
    } else if (lives.length === 1 && life.counted < Math.min(life.total, life.proven.size)) {
      this.#complain("count", call, `was told so, and of ${life.proven.size} attempts ${life.counted} count`);
    }
    call.view.lives = lives.length > 0 ? lives : call.view.lives;
  }

  /** Who waited is let go. */
  opened(call: Call): void {
    this.#settled(call);
    const lives = this.#lives.filter((life) => life.openAt < Infinity && this.#mayTellOf(call, life));
    if (lives.length === 0) {
      this.#complain("latch", call, "was let go, and no latch that it may have met is open");
    } else {
      call.view.lives = lives;
    }
  }

  /** It was told that its latch is over. */
  expired(call: Call): void {
    this.#settled(call);
    // What it met it may have been told by an answer to another call, which goes on.
    const lives = call.view.lives ?? this.#lives.filter(({ goneAt }) => goneAt >= call.view.since);
    if (!lives.some(({ goneAt }) => goneAt < Infinity)) {
      this.#complain("latch", call, "was told that its latch is over, and none is that it may have met");
    }
  }

  /** It was refused, or ended. */
  refused(call: Call): void {
    this.#settled(call);
  }

  /** A client never does anything again. */
  gone(client: number): void {
    this.#calls.filter((call) => call.view.client === client && !call.isSettled).forEach(this.#settle);
  }

  /** After everything that happens. */
  look(): void {
    const { now } = this.#findings;
    this.#calls = this.#calls.filter(({ until }) => until >= now);
    const seen = this.#sight.read();
    const last = this.#lives.at(-1);
    if (last && last.goneAt === Infinity && last.id !== seen?.id) {
      this.#ends(last);
    }
    if (seen && seen.id !== this.#lives.at(-1)?.id) {
      this.#begins(seen);
    } else if (seen && last) {
      this.#goesOn(last, seen);
    }
    this.#lookForDelays();
    this.#lookForLeftovers();
  }

  #ends(life: Life): void {
    const { now } = this.#findings;
    const leftMs = life.ends - this.#sight.now();
    life.goneAt = now;
    if (this.#terms.isKept && leftMs > 0) {
      this.#findings.add("latch", `${this.#key}: a latch is gone ${leftMs.toFixed(0)} ms before its end`);
    } else if (leftMs > -1) {
      life.becomes(Math.max(0, life.left - this.#mayCount(life).size), now); // in its last moment, unseen
    }
  }

  /** Only who has met none may begin one, and for as long as he says. */
  #begins(seen: Seen): void {
    const forMs = seen.ends - this.#sight.now();
    const life = new Life({ ...seen, left: seen.total }, this.#findings.now);
    this.#lives.push(life);
    const isExplained = this.#calls.some(
      ({ mayBegin, view }) =>
        mayBegin && view.count === seen.total && Math.abs(view.ttlMs - forMs) <= roundingMs,
    );
    if (!isExplained) {
      this.#findings.add(
        "latch",
        `${this.#key}: a latch of ${forMs.toFixed(0)} ms began that nobody asked for`,
      );
    }
    this.#goesOn(life, seen);
  }

  #goesOn(life: Life, seen: Seen): void {
    if (seen.left > life.left || seen.total !== life.total || seen.ends !== life.ends) {
      const [was, is] = [life, seen].map(({ left, total, ends }) => `${left} of ${total} until ${ends}`);
      this.#findings.add("latch", `${this.#key}: a latch was ${was}, and is ${is}`);
    } else if (seen.left < life.left) {
      this.#falls(life, life.left - seen.left);
    }
    life.becomes(seen.left, this.#findings.now);
  }

  /** Each attempt counts once, while its call is under way. */
  #falls(life: Life, by: number): void {
    const attempts = this.#mayCount(life);
    if (attempts.size < by) {
      this.#findings.add("count", `${this.#key}: ${by} counted where ${attempts.size} may have`);
    } else if (attempts.size === by) {
      attempts.forEach((attempt) => life.proven.add(attempt));
    }
  }

  /** What is under way, and has not counted yet. Who had met none when he asked may be carried out again where another latch began. */
  #mayCount(life: Life): ReadonlySet<string> {
    const calls = this.#calls.filter(
      ({ view, mayBegin }) => mayBegin || (view.lives?.includes(life) ?? true),
    );
    const attempts = calls.flatMap(({ attempt }) => attempt ?? []);
    return new Set(attempts.filter((attempt) => !life.proven.has(attempt)));
  }

  /** Who waits for what is open, or over, is told. */
  #lookForDelays(): void {
    const { since, ms } = this.#terms.patience();
    for (const call of ms === Infinity ? [] : this.#calls) {
      const ended = this.#livesOf(call).map(({ endedAt }) => endedAt);
      const from = Math.max(since, call.askedAt, ...ended);
      if (
        !call.isSettled &&
        call.attempt === undefined &&
        ended.length > 0 &&
        this.#findings.now - from > ms
      ) {
        this.#complain(
          "progress",
          call,
          `waits for ${(this.#findings.now - from).toFixed(0)} ms after the end`,
        );
        this.#settle(call);
      }
    }
  }

  #lookForLeftovers(): void {
    const waiters = this.#sight.waiters?.() ?? 0;
    const most = this.#calls.filter(({ attempt }) => attempt === undefined).length;
    if (this.#terms.isTidy && waiters > most) {
      this.#findings.add("leftovers", `${this.#key}: ${waiters} stand in the queue where ${most} wait`);
    }
  }

  /** Whether it may be told of that latch: it may have met it, or shares its view with a call that has, and whose message was late. */
  #mayTellOf(call: Call, life: Life): boolean {
    const { view, askedAt } = call;
    const others = this.#calls.filter((other) => other.view === view && other.settledAt >= askedAt);
    return [call, ...others].some((one) => this.#livesOf(one).includes(life));
  }

  /** Which latches it may be about. */
  #livesOf({ view, askedAt }: Call): readonly Life[] {
    return (view.lives ?? this.#lives).filter(({ goneAt }) => goneAt >= askedAt);
  }

  #settled(call: Call): void {
    this.look();
    this.#settle(call);
  }

  readonly #settle = (call: Call): void => {
    const { now } = this.#findings;
    call.isSettled = true;
    call.settledAt = now;
    call.until = Math.max(now, (call.attempt === undefined ? now : call.askedAt) + this.#terms.latestMs);
  };

  #complain(check: "count" | "latch" | "progress", { view, attempt, askedAt }: Call, what: string): void {
    const who = `client ${view.client}, who asked at ${askedAt.toFixed(3)}`;
    this.#findings.add(check, `${this.#key}: ${who} ${attempt === undefined ? "" : `as ${attempt} `}${what}`);
  }
}

/** Times are kept in whole ms. */
const roundingMs = 2;
