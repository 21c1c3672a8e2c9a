import type { Clock } from "../../../runtime/clock.ts";
import type { ServerHealth } from "../server/health.ts";

/** Added to what a node may have promised: uptimes are whole seconds, and clocks drift. */
const marginMs = 2_400;
const minExclusionMs = 50;
const maxExclusionMs = 5_000;

/** Why a node of a quorum does not vote, and for how long, as far as that is known. */
export interface Quarantine {
  readonly reason: string;
  readonly remainingMs: number | null;
  /** It may be over with the next answer: what the node says is kept, and counts from then on. */
  readonly isMomentary: boolean;
}

/** As a vote tells it: with the seconds that are left, where they are known. */
export function quarantineMessage({ reason, remainingMs }: Quarantine): string {
  return remainingMs === null ? reason : `${reason}, for ${Math.ceil(remainingMs / 1000)} s more`;
}

/** When a node that does not vote is thought of again. */
export function exclusionMs({ remainingMs }: Quarantine): number {
  return Math.min(maxExclusionMs, Math.max(minExclusionMs, remainingMs ?? Infinity));
}

/**
 * Keeps a node from voting that may have forgotten grants which are still valid: until its uptime exceeds the largest TTL, unless
 * it had every write on its disk. A restart that we saw is waited for on our own clock. Also a node that is no master.
 */
export class RestartGuard {
  readonly #clock: Clock;
  readonly #memoryMs: number;
  readonly #isOff: boolean;
  #runId: string | undefined;
  #isFirstRun = true;
  #wasDurable = true;
  #health: ServerHealth | undefined;
  #mayForgetUntil = -Infinity;

  /** @param promisedMs the largest TTL of anybody who uses these nodes, and how long votes wait behind it */
  constructor(clock: Clock, promisedMs: number, isOff: boolean) {
    this.#clock = clock;
    this.#memoryMs = promisedMs + marginMs;
    this.#isOff = isOff;
  }

  get runId(): string | undefined {
    return this.#runId;
  }

  /** What this run of the server says of itself is known. */
  get isExamined(): boolean {
    return this.#health !== undefined;
  }

  /** It was found to have every write on its disk before it answers. */
  get isDurable(): boolean {
    return this.#health?.isDurable === true && this.#wasDurable;
  }

  /** An answer came from this run of the server. True: its standing has to be asked for. */
  observe(runId: string, reportedUptimeMs: number): boolean {
    if (runId === this.#runId) {
      return false;
    }
    const uptimeMs = reportedUptimeMs > 0 ? reportedUptimeMs : 0; // negative: its clock was put back since; that says nothing, nor does NaN
    this.#isFirstRun = this.#runId === undefined;
    this.#wasDurable = this.#isFirstRun || this.isDurable;
    this.#runId = runId;
    this.#health = undefined;
    this.#mayForget(this.#isFirstRun ? this.#memoryMs - uptimeMs : this.#memoryMs);
    return true;
  }

  /**
   * What the server says of itself. Returns what it shows to have been forgotten without a restart. The examination of another run
   * than the one that answers is ignored: its answer may be read behind the first answer of the next run.
   */
  examine(health: ServerHealth): string | undefined {
    if (this.#runId === undefined) {
      this.observe(health.runId, health.uptimeMs);
    } else if (this.#runId !== health.runId) {
      return undefined;
    }
    const before = this.#health;
    this.#health = health;
    if (this.isDurable) {
      this.#mayForgetUntil = before === undefined ? -Infinity : this.#mayForgetUntil;
    }
    if (before && before.replicationId !== health.replicationId) {
      this.#mayForget(this.#memoryMs);
      return "another history: it was a replica, or became one";
    }
    return before && before.flushes !== health.flushes ? "keys were flushed" : undefined;
  }

  /** Undefined: it may vote. */
  get quarantine(): Quarantine | undefined {
    const health = this.#health;
    const now = this.#clock.now();
    if (health && health.role !== "master") {
      return { reason: `it is a ${health.role}, not a master`, remainingMs: null, isMomentary: false };
    }
    if (this.#isOff) {
      return undefined;
    }
    if (this.#mayForgetUntil > now) {
      const reason = "it may have forgotten since it restarted";
      return { reason, remainingMs: this.#mayForgetUntil - now, isMomentary: !health };
    }
    return health ? undefined : { reason: "it was not examined yet", remainingMs: null, isMomentary: true };
  }

  #mayForget(forMs: number): void {
    this.#mayForgetUntil = Math.max(this.#mayForgetUntil, this.#clock.now() + forMs);
  }
}
