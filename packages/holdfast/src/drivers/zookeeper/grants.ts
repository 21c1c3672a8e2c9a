import { driftAllowanceMs } from "../../validity.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { NodeData } from "./wire/operations.ts";

/** The data of a grant's node. */
export interface GrantValue {
  readonly owner: string;
  readonly reason?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly ttlMs: number;
  /** The inbox of the driver that wrote the value. */
  readonly client: string;
}

/** A grant as it was read. */
export interface GrantView extends GrantValue {
  readonly path: string;
  /** The transaction that created the node. */
  readonly fencingToken: bigint;
  readonly version: number;
  /** The grant, by the wall clock of the server, ms. */
  readonly createdAt: number;
  /** The last extension, by the wall clock of the server, ms. */
  readonly changedAt: number;
}

export function grantOf(path: string, { data, stat }: NodeData): GrantView {
  const { createdBy: fencingToken, version, createdAt, changedAt } = stat;
  return { ...(JSON.parse(data) as GrantValue), path, fencingToken, version, createdAt, changedAt };
}

const maxObserved = 10_000;

/**
 * How long this process has seen grants without an extension. After a TTL without an extension, a grant has certainly expired,
 * whatever the wall clocks of the servers show.
 */
export class Observations {
  readonly #clock: Clock;
  readonly #seen = new Map<string, { readonly version: number; readonly since: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Notes a grant that was just read. @returns how long it must stay unchanged until it is expired, ms */
  remainingMs({ path, version, ttlMs }: Pick<GrantView, "path" | "version" | "ttlMs">): number {
    const now = this.#clock.now();
    const known = this.#seen.get(path);
    const seen = known?.version === version ? known : { version, since: now };
    this.#seen.delete(path);
    this.#seen.set(path, seen);
    if (this.#seen.size > maxObserved) {
      this.#seen.delete(this.#seen.keys().next().value as string);
    }
    return Math.max(0, seen.since + ttlMs + driftAllowanceMs(ttlMs) - now);
  }

  forget(path: string): void {
    this.#seen.delete(path);
  }
}

/** The wall clock of the servers, as their replies to writes show it. */
export class ServerTime {
  readonly #clock: Clock;
  #offsetMs: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param changedAt the time of a change whose reply has just arrived */
  learn(changedAt: number): void {
    this.#offsetMs = changedAt - this.#clock.wall();
  }

  /** How long ago a change was, approximately, ms. */
  ageMs(changedAt: number): number {
    return Math.max(0, this.#clock.wall() + (this.#offsetMs ?? 0) - changedAt);
  }

  /** Like {@link ageMs}; undefined: no reply to a write has shown the time of the servers. */
  durationMs(createdAt: number): number | undefined {
    return this.#offsetMs === undefined ? undefined : Math.floor(this.ageMs(createdAt));
  }
}
