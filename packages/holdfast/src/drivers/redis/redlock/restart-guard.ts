import type { Clock } from "../../../runtime/clock.ts";
import type { RestartGuardPolicy } from "../options.ts";
import type { ServerHealth } from "../server/handshake.ts";

/** Added to the largest TTL of a grant, because uptimes are whole seconds and clocks drift. */
const marginMs = 2_400;
/** A grant whose run is longer ago needs the next majority to be counted again. */
const maxKeptRuns = 20;
const minQuarantineRetryMs = 50;
const maxQuarantineRetryMs = 5_000;

/** Why a node of a quorum does not vote, and for how long. */
export interface Quarantine {
  readonly reason: string;
  /** Null: unknown. */
  readonly remainingMs: number | null;
  /** The quarantine may end with the next reply: a vote of the node is kept, and counts from then on. */
  readonly isMomentary: boolean;
}

/** The reason with the remaining seconds, if they are known. */
export function quarantineMessage({ reason, remainingMs }: Quarantine): string {
  return remainingMs === null ? reason : `${reason}, for ${Math.ceil(remainingMs / 1000)} s more`;
}

/** The delay until the next request to a node in quarantine. */
export function quarantineRetryMs({ remainingMs }: Quarantine): number {
  return Math.min(maxQuarantineRetryMs, Math.max(minQuarantineRetryMs, remainingMs ?? Infinity));
}

/**
 * Keeps a restarted node from voting, because the node may have lost grants that are still valid. The node votes again once all these
 * grants have expired. With the policy `trust-durable` it votes at once after a restart that this client saw lose nothing, as far as a
 * client can see that. Also keeps a node from voting that is no master.
 */
export class RestartGuard {
  readonly #clock: Clock;
  readonly #memoryMs: number;
  readonly #policy: RestartGuardPolicy;
  #runId: string | undefined;
  #health: ServerHealth | undefined;
  #mayForgetUntil = -Infinity;
  /** The earlier runs whose grants this run has. */
  #keptRuns: readonly string[] = [];
  /** The state if this run lost nothing at its start. Undefined: it may have lost grants. */
  #withoutLoss:
    | { readonly keptRuns: readonly string[]; readonly mayForgetUntil: number; readonly files: string }
    | undefined;

  /** @param memoryMs the largest TTL of any client of these nodes, plus the longest wait of a vote after an expired grant */
  constructor(clock: Clock, memoryMs: number, policy: RestartGuardPolicy) {
    this.#clock = clock;
    this.#memoryMs = memoryMs + marginMs;
    this.#policy = policy;
  }

  get runId(): string | undefined {
    return this.#runId;
  }

  /** The health of this run of the server is known. */
  get isExamined(): boolean {
    return this.#health !== undefined;
  }

  /** The present run has every grant that the server gave in that run. */
  hasKept(runId: string): boolean {
    return this.#keptRuns.includes(runId);
  }

  /**
   * A reply came from this run of the server. A restart during the life of this guard is timed by the clock of the client.
   * @returns whether the run is new, so that its health must be read
   */
  observe(runId: string, reportedUptimeMs: number): boolean {
    if (runId === this.#runId) {
      return false;
    }
    const uptimeMs = reportedUptimeMs > 0 ? reportedUptimeMs : 0; // a negative uptime, after the clock was set back, or NaN shows nothing
    const before = this.#runId;
    this.#withoutLoss =
      before !== undefined && this.#isTrusted
        ? {
            keptRuns: [...this.#keptRuns, before].slice(-maxKeptRuns),
            mayForgetUntil: this.#mayForgetUntil,
            files: this.#health?.files ?? "",
          }
        : undefined;
    this.#keptRuns = [];
    this.#runId = runId;
    this.#health = undefined;
    this.#mayForget(before === undefined ? this.#memoryMs - uptimeMs : this.#memoryMs);
    return true;
  }

  /**
   * Records the health of the server. The health of another run than the latest is ignored, because its reply may arrive after the first
   * reply of the next run.
   * @returns how the server may have lost grants without a restart; undefined: it has not
   */
  examine(health: ServerHealth): string | undefined {
    if (this.#runId === undefined) {
      this.observe(health.runId, health.uptimeMs);
    } else if (this.#runId !== health.runId) {
      return undefined;
    }
    const before = this.#health;
    this.#health = health;
    if (before === undefined) {
      this.#keepRuns(health);
    }
    if (before && before.replicationId !== health.replicationId) {
      this.#mayForget(this.#memoryMs);
      return "another history: it was a replica, or became one";
    }
    return before && before.flushes !== health.flushes ? "keys were flushed" : undefined;
  }

  /** If this run has loaded the file of the run before, and both are trusted, nothing was lost between them. */
  #keepRuns(health: ServerHealth): void {
    const isLoaded = !health.hasRewritten && this.#withoutLoss?.files === health.files;
    if (this.#withoutLoss && isLoaded && this.#isTrusted) {
      ({ keptRuns: this.#keptRuns, mayForgetUntil: this.#mayForgetUntil } = this.#withoutLoss);
    }
  }

  /** Undefined: the node may vote. */
  get quarantine(): Quarantine | undefined {
    const health = this.#health;
    const now = this.#clock.now();
    if (health && health.role !== "master") {
      return { reason: `it is a ${health.role}, not a master`, remainingMs: null, isMomentary: false };
    }
    if (this.#policy === "off") {
      return undefined;
    }
    if (this.#mayForgetUntil > now) {
      const reason = "it restarted, and may have forgotten grants";
      return { reason, remainingMs: this.#mayForgetUntil - now, isMomentary: !health };
    }
    return health ? undefined : { reason: "not examined yet", remainingMs: null, isMomentary: true };
  }

  /**
   * The run that was examined last has each grant on its disk, by its latest examination. A replica may lack grants of its former primary.
   */
  get #isTrusted(): boolean {
    const health = this.#health;
    return this.#policy === "trust-durable" && health?.isDurable === true && health.role === "master";
  }

  #mayForget(forMs: number): void {
    this.#mayForgetUntil = Math.max(this.#mayForgetUntil, this.#clock.now() + forMs);
  }
}
