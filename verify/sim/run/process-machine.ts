import type { FakeRedis } from "@holdfast/test-kit/fake-redis";
import type { Driver } from "holdfast";
import { faulty, manualRandom, type FaultInjector } from "holdfast/testing";

import { driverOf } from "./engines.ts";
import { ProcessGate, gatedConnection } from "./gate.ts";
import { LateRequests } from "./late-requests.ts";
import type { ClientSetup, Schedule } from "../plan/schedule.ts";
import { ClockView, wallStart, type VirtualClock } from "./virtual-clock.ts";

/** A process with its clock, its driver, and its connections to all nodes. */
export class ProcessMachine {
  readonly id: string;
  readonly clock: ClockView;
  readonly gate: ProcessGate;
  readonly driver: Driver;
  readonly faults: readonly FaultInjector[];
  /** By node. */
  readonly lateRequests: readonly LateRequests[];
  isDead = false;
  /** The process was frozen, or its wall clock was set, so that its timers may fire late. */
  hadFault = false;
  readonly #setup: ClientSetup;

  constructor(
    world: VirtualClock,
    index: number,
    setup: ClientSetup,
    schedule: Schedule,
    servers: readonly FakeRedis[],
  ) {
    this.#setup = setup;
    this.clock = new ClockView(world, { rate: setup.rate, wall: wallStart + setup.offsetMs });
    this.gate = new ProcessGate(world);
    const network = new ClockView(world);
    const links = servers.map((server) => {
      const { connection, controls } = faulty(server.connect(), { clock: network });
      const late = new LateRequests(network);
      return { connection: gatedConnection(connection, this.gate, late), controls, late };
    });
    this.faults = links.map(({ controls }) => controls);
    this.lateRequests = links.map(({ late }) => late);
    const seed = schedule.seed * 16 + index;
    this.id = manualRandom(seed).id();
    this.driver = driverOf(
      schedule,
      links.map(({ connection }) => connection),
      { clock: this.clock, random: manualRandom(seed) },
    );
    this.faults.forEach((_, node) => {
      this.restoreDelay(node);
    });
  }

  get isRunning(): boolean {
    return !this.isDead && this.gate.isOpen;
  }

  restoreDelay(node: number): void {
    const delayMs = this.#setup.delaysMs[node] ?? 0;
    const messageMs = this.#setup.messageDelaysMs[node] ?? 0;
    this.faults[node]?.delay({ requestMs: delayMs, replyMs: delayMs, messageMs });
  }

  freeze(sleeps: boolean): void {
    this.hadFault = true;
    this.gate.close();
    this.clock.freeze(sleeps);
  }

  thaw(): void {
    if (!this.isDead) {
      this.clock.thaw();
      this.gate.open();
    }
  }

  /**
   * The process pauses while it handles the event.
   * @param readings how many readings of its clocks in that turn precede the pause
   * @returns ends the pause
   */
  pauseTurn(event: () => void, readings: number): () => void {
    const resumeClock = this.clock.pause();
    this.freeze(false);
    return () => {
      if (!this.isDead) {
        resumeClock(readings);
        this.thaw();
        event();
      }
    };
  }

  /** Sets the wall clock. */
  step(ms: number): void {
    this.hadFault = true;
    this.clock.step(ms);
  }

  die(keepsConnections: boolean): void {
    this.isDead = true;
    this.gate.destroy(keepsConnections);
    this.clock.die();
  }
}
