import { setTimeout as pause } from "node:timers/promises";

import type { Failover } from "../judge/history.ts";
import type { ChaosServer } from "./chaos-server.ts";
import type { Succession } from "./succession.ts";

const lookEveryMs = 40;

interface Seen {
  readonly isPrimary: boolean;
  readonly sentAt: number;
}

/**
 * Looks all the time who is primary, and tells when one took the place of another, by the plan or not, and for how long two said
 * that they are. What was granted by the one may be unknown to the other.
 */
export class FailoverWatch {
  readonly #succession: Succession;
  readonly #now: () => number;
  readonly #told: (failover: Failover) => void;
  readonly #seen = new Map<ChaosServer, Seen>();
  readonly #open = new Map<readonly ChaosServer[], Omit<Failover, "until" | "keys">>();
  #isOver = false;

  constructor(succession: Succession, now: () => number, told: (failover: Failover) => void) {
    this.#succession = succession;
    this.#now = now;
    this.#told = told;
    for (const group of succession.groups) {
      for (const member of group) {
        void this.#look(group, member);
      }
    }
  }

  /** What is under way is told as it is. */
  stop(): void {
    this.#isOver = true;
    for (const failover of this.#open.values()) {
      this.#told({ ...failover, until: this.#now(), keys: null });
    }
  }

  async #look(group: readonly ChaosServer[], member: ChaosServer): Promise<void> {
    while (!this.#isOver) {
      const sentAt = this.#now();
      const isPrimary = await member.isPrimary().catch(() => undefined);
      if (isPrimary !== undefined && !this.#isOver) {
        await this.#note(group, member, { isPrimary, sentAt });
      }
      await pause(lookEveryMs);
    }
  }

  async #note(group: readonly ChaosServer[], member: ChaosServer, seen: Seen): Promise<void> {
    const before = this.#seen.get(member);
    this.#seen.set(member, seen);
    for (const dead of group.filter(({ isUp }) => !isUp)) {
      this.#seen.delete(dead);
    }
    const [primary, ...more] = group.filter((each) => this.#seen.get(each)?.isPrimary === true);
    const isPromotion = seen.isPrimary && before?.isPrimary === false;
    if (isPromotion || (more.length > 0 && !this.#open.has(group))) {
      const since = this.#open.get(group)?.since ?? (before ?? seen).sentAt;
      this.#open.set(group, { since, at: this.#now(), server: member.port, isPromotion });
    }
    if (primary && more.length === 0) {
      await this.#close(group, primary);
    }
  }

  async #close(group: readonly ChaosServer[], primary: ChaosServer): Promise<void> {
    const failover = this.#open.get(group);
    this.#open.delete(group);
    if (failover) {
      const until = this.#now();
      this.#told({ ...failover, until, keys: await this.#succession.keysOf(primary).catch(() => null) });
    }
  }
}
