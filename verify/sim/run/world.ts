import type { Driver } from "holdfast";

import { FinalChecks } from "../judge/aftermath.ts";
import { Callers } from "./callers.ts";
import { Client } from "./client.ts";
import type { Finding } from "../judge/findings.ts";
import { History } from "../judge/history.ts";
import { LatchCallers } from "./latch-callers.ts";
import { watchLatches } from "../judge/latch-watch.ts";
import { faultFreeBoundMs } from "../judge/patience.ts";
import { keysIn } from "./quiet-period.ts";
import { ProcessMachine } from "./process-machine.ts";
import {
  isFault,
  isLatchAction,
  isUse,
  losesNothing,
  type Await,
  type Break,
  type CountDown,
  type Schedule,
  type SetLimit,
  type Step,
  type Use,
} from "../plan/schedule.ts";
import { forEachLink, Recovery } from "./recovery.ts";
import { ServerMachine } from "./server-machine.ts";
import { ServerWatch } from "../judge/server-watch.ts";
import type { Record } from "./traced-redis.ts";
import { WorldFaults } from "./fault-injector.ts";
import { LivelockError, VirtualClock } from "./virtual-clock.ts";

export interface RunOptions {
  /** Called with each event. */
  readonly trace?: (line: string) => void;
  /** Called with each effect on a mutex of a quorum's node, and with each lease. */
  readonly record?: Record | undefined;
  /** Wraps the driver of each process. */
  readonly wrapDriver?: (driver: Driver) => Driver;
}

export interface RunReport {
  readonly findings: readonly Finding[];
  /** The reasons for which a check was not applied. */
  readonly excuses: readonly string[];
  readonly grants: number;
  /** How many calls callers made. */
  readonly operations: number;
  /** How many scripts and commands clients sent to servers. */
  readonly commands: number;
}

/** Runs a schedule to its end, and reports the failed checks. Equal schedules give equal reports. */
export async function runSchedule(schedule: Schedule, options: RunOptions = {}): Promise<RunReport> {
  const world = new World(schedule, options);
  const { history } = world;
  const unhandled = (reason: unknown): void => {
    history.fail("rejection", String(reason));
  };
  process.on("unhandledRejection", unhandled);
  let timer: NodeJS.Timeout | undefined;
  const stuck = new Promise<void>((resolve) => {
    let reached = -1;
    timer = setInterval(() => {
      if (world.now === reached) {
        history.fail("progress", `the schedule stands still at ${reached.toFixed(3)} ms`);
        resolve();
      }
      reached = world.now;
    }, stuckTimeoutMs);
  });
  try {
    await Promise.race([world.run(), stuck]);
  } catch (error) {
    if (!(error instanceof LivelockError)) {
      throw error;
    }
    history.fail("progress", error.message);
  } finally {
    clearInterval(timer);
    process.off("unhandledRejection", unhandled);
  }
  const { grants, operations, findings } = history;
  return {
    findings: findings.list,
    excuses: [...findings.skipped],
    grants,
    operations,
    commands: world.commands,
  };
}

/** Within this real time the simulated time of a schedule advances, on slow machines too, ms. */
const stuckTimeoutMs = 60_000;

class World {
  readonly history: History;
  readonly #schedule: Schedule;
  readonly #clock: VirtualClock;
  readonly #machines: readonly ServerMachine[];
  readonly #clients: readonly Client[];
  readonly #trace: (line: string) => void;
  readonly #callers: Callers;
  readonly #latchCallers: LatchCallers;
  readonly #worldFaults: WorldFaults;

  constructor(schedule: Schedule, { trace, record, wrapDriver = (driver) => driver }: RunOptions) {
    this.#schedule = schedule;
    this.#clock = new VirtualClock(() => {
      this.history.check();
    });
    this.history = new History(
      () => this.#clock.now,
      schedule,
      (client) => (this.#clients[client] as Client).process,
    );
    this.history.onGrant = (key, fencingNumber) => {
      record?.(`lock:${key}`, { kind: "held", fencingNumber });
    };
    this.#trace = trace
      ? (line) => {
          trace(`${this.#clock.now.toFixed(3)} ${line}`);
        }
      : () => undefined;
    const { seed, nodes, clients, quietAt } = schedule;
    this.#machines = nodes.map(
      (setup, index) => new ServerMachine(this.#clock, index, setup, seed * 16 + 15 - index, record),
    );
    const servers = this.#machines.map(({ server }) => server);
    const isShared = schedule.engine === "server" && ["read-write", "semaphore"].includes(schedule.kind);
    this.history.serverWatches = servers.flatMap((server) =>
      isShared ? keysIn(schedule.steps).map((key) => new ServerWatch(this.history, server, key)) : [],
    );
    const processes = new Map<number, ProcessMachine>();
    const drivers = new Map<ProcessMachine, Driver>();
    this.#clients = clients.map((setup, index) => {
      const process =
        processes.get(setup.process) ?? new ProcessMachine(this.#clock, index, setup, schedule, servers);
      processes.set(setup.process, process);
      const driver = drivers.get(process) ?? wrapDriver(process.driver);
      drivers.set(process, driver);
      return new Client(index, process, setup, driver);
    });
    this.#callers = new Callers(this.history, this.#clients, this.#trace, (fault) =>
      this.#worldFaults.inject(fault),
    );
    const latches = watchLatches(schedule, this.history, this.#machines, this.#clients);
    this.#latchCallers = new LatchCallers(this.history, schedule.limit ?? 1, latches, this.#trace);
    this.history.serverWatches = [
      ...this.history.serverWatches,
      ...Array.from(latches.values(), ({ history }) => history),
    ];
    this.#worldFaults = new WorldFaults({
      clock: this.#clock,
      history: this.history,
      machines: this.#machines,
      clients: this.#clients,
      quietAt,
    });
  }

  /** The simulated time, ms. */
  get now(): number {
    return this.#clock.now;
  }

  get commands(): number {
    return [...new Set(this.#clients.map(({ process }) => process.gate))].reduce(
      (sum, { sent }) => sum + sent,
      0,
    );
  }

  async run(): Promise<void> {
    const { steps, quietAt, scenario } = this.#schedule;
    if (losesNothing(this.#schedule)) {
      this.history.setFreeBound(faultFreeBoundMs(this.#schedule));
    }
    const dropEvent =
      scenario === "lost-inquiries"
        ? "inquiry"
        : scenario === "lost-notifications"
          ? grantEvent(this.#schedule)
          : undefined;
    if (dropEvent !== undefined) {
      forEachLink(this.#clients, (faults) => {
        faults.dropMessages((text) => text.startsWith(dropEvent));
      });
    }
    for (const step of steps) {
      this.#clock.at(step.at, () => {
        this.#startStep(step);
      });
    }
    await this.#clock.advance(quietAt);
    await new Recovery({
      schedule: this.#schedule,
      clock: this.#clock,
      history: this.history,
      clients: this.#clients,
      callers: this.#callers,
      latchCallers: this.#latchCallers,
      trace: this.#trace,
    }).run();
    await new FinalChecks(this.#schedule, this.#clock, this.history).run(this.#clients, this.#machines);
  }

  #startStep(step: Step): void {
    this.#trace(JSON.stringify(step));
    if (isFault(step)) {
      this.#worldFaults.inject(step);
      return;
    }
    const client = this.#clients[step.client] as Client;
    if (!client.isDead) {
      client.process.gate.pass(() => {
        void this.#begin(client, step);
      });
    }
  }

  #begin(client: Client, step: Use | Break | SetLimit | CountDown | Await): Promise<unknown> {
    if (isLatchAction(step)) {
      return this.#latchCallers.call(client, step);
    }
    if (isUse(step)) {
      return this.#callers.use(client, step);
    }
    return step.kind === "break" ? this.#callers.break(client, step) : this.#callers.setLimit(client, step);
  }
}

/** The prefix of the messages that wake waiters. */
function grantEvent({ kind }: Schedule): string {
  return kind === "latch" ? "open" : "grant";
}
