import { setTimeout as pause } from "node:timers/promises";

import type { Failover } from "../judge/history.ts";
import type { RedisChaosServer } from "./redis-chaos-server.ts";
import type { FailoverGroups } from "./succession.ts";

const pollMs = 40;

interface Observation {
  readonly isPrimary: boolean;
  readonly sentAt: number;
}

/**
 * Polls the role of every server, and reports each failover, planned or not. It also reports for how long two servers claimed to be the
 * primary. The new primary may lack grants of the former one.
 */
export class FailoverWatch {
  readonly #groups: FailoverGroups;
  readonly #now: () => number;
  readonly #onFailover: (failover: Failover) => void;
  readonly #observations = new Map<RedisChaosServer, Observation>();
  readonly #open = new Map<readonly RedisChaosServer[], Omit<Failover, "until" | "keys">>();
  #isOver = false;

  constructor(groups: FailoverGroups, now: () => number, onFailover: (failover: Failover) => void) {
    this.#groups = groups;
    this.#now = now;
    this.#onFailover = onFailover;
    for (const group of groups.groups) {
      for (const member of group) {
        void this.#poll(group, member);
      }
    }
  }

  /** Reports the current failover in its present state. */
  stop(): void {
    this.#isOver = true;
    for (const failover of this.#open.values()) {
      this.#onFailover({ ...failover, until: this.#now(), keys: null });
    }
  }

  async #poll(group: readonly RedisChaosServer[], member: RedisChaosServer): Promise<void> {
    while (!this.#isOver) {
      const sentAt = this.#now();
      const isPrimary = await member.isPrimary().catch(() => undefined);
      if (isPrimary !== undefined && !this.#isOver) {
        await this.#observe(group, member, { isPrimary, sentAt });
      }
      await pause(pollMs);
    }
  }

  async #observe(
    group: readonly RedisChaosServer[],
    member: RedisChaosServer,
    seen: Observation,
  ): Promise<void> {
    const before = this.#observations.get(member);
    this.#observations.set(member, seen);
    for (const dead of group.filter(({ isUp }) => !isUp)) {
      this.#observations.delete(dead);
    }
    const [primary, ...more] = group.filter((each) => this.#observations.get(each)?.isPrimary === true);
    const isPromotion = seen.isPrimary && before?.isPrimary === false;
    if (isPromotion || (more.length > 0 && !this.#open.has(group))) {
      const since = this.#open.get(group)?.since ?? (before ?? seen).sentAt;
      this.#open.set(group, { since, at: this.#now(), newPrimary: member.port, isPromotion });
    }
    if (primary && more.length === 0) {
      await this.#close(group, primary);
    }
  }

  async #close(group: readonly RedisChaosServer[], primary: RedisChaosServer): Promise<void> {
    const failover = this.#open.get(group);
    this.#open.delete(group);
    if (failover) {
      const until = this.#now();
      this.#onFailover({ ...failover, until, keys: await this.#groups.keysOf(primary).catch(() => null) });
    }
  }
}
