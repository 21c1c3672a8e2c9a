import type { FaultInjector } from "holdfast/testing";

import { allWaitersMs, lateLatchMs, quietBoundMs } from "../judge/patience.ts";
import type { History } from "../judge/history.ts";
import { isFaultFree, type Schedule } from "../plan/schedule.ts";
import type { Callers } from "./callers.ts";
import type { Client } from "./client.ts";
import type { LatchCallers } from "./latch-callers.ts";
import { keysIn, quietPeriodUses } from "./quiet-period.ts";
import type { VirtualClock } from "./virtual-clock.ts";

const maxTries = 100;

export interface RecoveryOptions {
  readonly schedule: Schedule;
  readonly clock: VirtualClock;
  readonly history: History;
  readonly clients: readonly Client[];
  readonly callers: Callers;
  readonly latchCallers: LatchCallers;
  readonly trace: (line: string) => void;
}

/** The end of a schedule: after the last fault, every living client must be granted every lock. */
export class Recovery {
  readonly #schedule: Schedule;
  readonly #clock: VirtualClock;
  readonly #history: History;
  readonly #clients: readonly Client[];
  readonly #callers: Callers;
  readonly #latchCallers: LatchCallers;
  readonly #trace: (line: string) => void;

  constructor({ schedule, clock, history, clients, callers, latchCallers, trace }: RecoveryOptions) {
    this.#schedule = schedule;
    this.#clock = clock;
    this.#history = history;
    this.#clients = clients;
    this.#callers = callers;
    this.#latchCallers = latchCallers;
    this.#trace = trace;
  }

  /** Ends all faults. In the quiet period every living client must be granted every lock. */
  async run(): Promise<void> {
    this.#trace("peace");
    const { scenario, steps } = this.#schedule;
    if (scenario !== "lost-notifications") {
      forEachLink(this.#clients, (faults) => {
        faults.dropReply(0);
        faults.duplicate(0, 0);
        faults.dropMessages(null);
      });
    }
    const boundMs = quietBoundMs(this.#schedule, this.#clients);
    if (!isFaultFree(this.#schedule)) {
      this.#history.setFreeBound(boundMs);
    }
    await this.#settleLimits();
    const keys = keysIn(steps);
    for (const client of this.#livingClients) {
      client.endPauses();
      this.#acquireEverything(client, keys);
    }
    const rounds = scenario === "lost-notifications" ? keys.length * this.#clients.length * 2 : 1;
    const begun = Math.max(this.#clock.now, ...steps.map(({ at }) => at)); // some steps are in the quiet period
    const elapsedMs = (): number => this.#clock.now - begun + this.#history.reservedForMs;
    const ownMs = boundMs * rounds + allWaitersMs + lateLatchMs(this.#schedule);
    let allMs = ownMs + elapsedMs();
    while ((this.#pendingClients.length > 0 || this.#clock.now < begun) && this.#clock.now < begun + allMs) {
      await this.#clock.advance(20);
      allMs = Math.max(allMs, ownMs + (this.#history.reservedForMs > 0 ? elapsedMs() : 0));
    }
    for (const { index, uses } of this.#pendingClients) {
      for (const use of uses) {
        this.#history.fail(
          "progress",
          `client ${index} was not granted ${use.key} within ${allMs.toFixed(0)} ms of the quiet period`,
        );
      }
    }
  }

  #acquireEverything(client: Client, keys: readonly string[]): void {
    for (const use of quietPeriodUses(this.#schedule, client.index)) {
      void this.#callers.use(client, use);
    }
    for (const key of this.#schedule.kind === "latch" ? keys : []) {
      void this.#latchCallers.open(client, key, this.#schedule.maxTtlMs);
    }
  }

  /** An operator sets the last limit again, until the engine confirms the limit. */
  async #settleLimits(): Promise<void> {
    const last = this.#schedule.steps.findLast((step) => step.kind === "set limit");
    const [client] = this.#livingClients;
    if (last?.kind === "set limit" && client) {
      for (let isSet = false, tries = 0; !isSet && tries < maxTries; tries += 1) {
        let isSettled = false;
        void this.#callers.setLimit(client, last).then((was) => {
          [isSet, isSettled] = [was, true];
        });
        for (let turns = 0; !isSettled && turns < maxTries; turns += 1) {
          await this.#clock.advance(20);
        }
      }
    }
  }

  get #livingClients(): readonly Client[] {
    return this.#clients.filter(({ isDead }) => !isDead);
  }

  get #pendingClients(): readonly Client[] {
    return this.#livingClients.filter(({ uses }) => uses.size > 0);
  }
}

/** Applies an action to the faults of every link between a client and a server. */
export function forEachLink(clients: readonly Client[], action: (faults: FaultInjector) => void): void {
  for (const { process } of clients) {
    process.faults.forEach(action);
  }
}
