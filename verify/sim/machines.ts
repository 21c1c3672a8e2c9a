import { createLocks, type Locks } from "holdfast";
import { redlock } from "holdfast/redis";
import { faulty, manualRandom, twin, type Faults, type Twin } from "holdfast/testing";

import { Gate, gated } from "./gate.ts";
import type { ClientSetup, NodeSetup, Schedule, Use } from "./schedule.ts";
import { ClockView, type WorldClock } from "./world-clock.ts";

export const commandTimeoutMs = 400;
const wallStart = 1_700_000_000_000;

/** A machine with a server on it. */
export class ServerMachine {
  readonly clock: ClockView;
  readonly server: Twin;
  /** For a while some client could not reach it. */
  wasAway = false;

  constructor(world: WorldClock, index: number, { offsetMs, rate, durable }: NodeSetup, seed: number) {
    this.clock = new ClockView(world, { rate, wall: wallStart + offsetMs });
    const random = manualRandom(seed);
    this.server = twin({ clock: this.clock, random, name: `n${index}`, durable, upForMs: 3_600_000 });
  }
}

/** A process that locks, and its connections to all nodes. */
export class ClientMachine {
  readonly index: number;
  readonly id: string;
  readonly clock: ClockView;
  readonly gate: Gate;
  readonly locks: Locks;
  readonly faults: readonly Faults[];
  /** What its callers asked for and have not given back. */
  readonly uses: Set<Use> = new Set();
  isDead = false;
  readonly #setup: ClientSetup;
  readonly #pauses = new Set<() => void>();
  #isHurried = false;

  constructor(
    world: WorldClock,
    index: number,
    setup: ClientSetup,
    schedule: Schedule,
    servers: readonly Twin[],
  ) {
    this.index = index;
    this.#setup = setup;
    this.clock = new ClockView(world, { rate: setup.rate, wall: wallStart + setup.offsetMs });
    this.gate = new Gate(world);
    const network = new ClockView(world);
    const links = servers.map((server) => {
      const { connection, controls } = faulty(server.connect(), { clock: network });
      return { connection: gated(connection, this.gate), controls };
    });
    this.faults = links.map(({ controls }) => controls);
    const seed = schedule.seed * 16 + index;
    this.id = manualRandom(seed).id();
    const { maxTtlMs, claimMs, nodeTimeoutMs } = schedule;
    const driver = redlock(
      links.map(({ connection }) => connection),
      { clock: this.clock, random: manualRandom(seed), maxTtlMs, claimMs, nodeTimeoutMs, commandTimeoutMs },
    );
    this.locks = createLocks(driver, setup.handover ? {} : { handover: false });
    this.faults.forEach((_, node) => {
      this.restoreDelay(node);
    });
  }

  restoreDelay(node: number): void {
    const delayMs = this.#setup.delaysMs[node] ?? 0;
    const messageMs = this.#setup.messageDelaysMs[node] ?? 0;
    this.faults[node]?.delay({ requestMs: delayMs, replyMs: delayMs, messageMs });
  }

  freeze(sleeps: boolean): void {
    this.gate.close();
    this.clock.freeze(sleeps);
  }

  thaw(): void {
    this.clock.thaw();
    this.gate.open();
  }

  die(silent: boolean): void {
    this.isDead = true;
    this.gate.destroy(silent);
    this.clock.die();
  }

  /** What the program on it does next. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isHurried) {
        resolve();
        return;
      }
      const timer = this.clock.setTimer(() => {
        this.#pauses.delete(end);
        resolve();
      }, ms);
      const end = (): void => {
        this.clock.clearTimer(timer);
        resolve();
      };
      this.#pauses.add(end);
    });
  }

  /** From now on its callers do not linger. */
  hurry(): void {
    this.#isHurried = true;
    for (const end of this.#pauses) {
      end();
    }
    this.#pauses.clear();
  }
}
