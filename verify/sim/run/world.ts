import type { Driver } from "holdfast";
import type { FaultInjector } from "holdfast/testing";

import { Aftermath } from "../judge/aftermath.ts";
import { Callers } from "./callers.ts";
import { Client } from "./client.ts";
import type { Finding } from "../judge/findings.ts";
import { History } from "../judge/history.ts";
import { LatchCallers } from "./latch-callers.ts";
import { watchLatches } from "../judge/latch-watch.ts";
import { everybodyMs, flawlessPatienceMs, lonelyMs, peaceBoundMs } from "../judge/patience.ts";
import { keysIn, usesInPeace } from "./quiet-period.ts";
import { ProcessMachine } from "./process-machine.ts";
import {
  isFault,
  isFlawless,
  isOfLatch,
  isUse,
  type Await,
  type Break,
  type CountDown,
  type Schedule,
  type SetLimit,
  type Step,
  type Use,
} from "../plan/schedule.ts";
import { ServerMachine } from "./server-machine.ts";
import { ServerRoom } from "../judge/server-watch.ts";
import type { Record } from "./traced-redis.ts";
import { Trouble } from "./fault-injector.ts";
import { StandstillError, WorldClock } from "./virtual-clock.ts";

export interface PlayOptions {
  /** Hears of everything that happens. */
  readonly trace?: (line: string) => void;
  /** Hears of what servers do with mutexes of a quorum, and of leases. */
  readonly record?: Record | undefined;
  /** Puts something between the drivers and who uses them. */
  readonly alter?: (driver: Driver) => Driver;
}

export interface Report {
  readonly findings: readonly Finding[];
  /** What was not judged, by the reason. */
  readonly excuses: readonly string[];
  readonly grants: number;
  /** Calls of callers. */
  readonly operations: number;
  /** Scripts and commands that servers were sent. */
  readonly commands: number;
}

/** Plays a schedule to its end, and says what went wrong. The same schedule, the same report. */
export async function play(schedule: Schedule, options: PlayOptions = {}): Promise<Report> {
  const world = new World(schedule, options);
  const { history } = world;
  const unhandled = (reason: unknown): void => {
    history.fail("rejection", String(reason));
  };
  process.on("unhandledRejection", unhandled);
  let timer: NodeJS.Timeout | undefined;
  const stuck = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      history.fail("progress", "the world waits for what never comes");
      resolve();
    }, stuckMs);
  });
  try {
    await Promise.race([world.play(), stuck]);
  } catch (error) {
    if (!(error instanceof StandstillError)) {
      throw error;
    }
    history.fail("progress", error.message);
  } finally {
    clearTimeout(timer);
    process.off("unhandledRejection", unhandled);
  }
  const { grants, operations, findings } = history;
  return {
    findings: findings.all,
    excuses: [...findings.excuses],
    grants,
    operations,
    commands: world.commands,
  };
}

const mostTries = 100;

/** Of real time: a schedule takes far less, on slow machines too. */
const stuckMs = 60_000;

class World {
  readonly history: History;
  readonly #schedule: Schedule;
  readonly #clock: WorldClock;
  readonly #machines: readonly ServerMachine[];
  readonly #clients: readonly Client[];
  readonly #trace: (line: string) => void;
  readonly #callers: Callers;
  readonly #latchCallers: LatchCallers;
  readonly #trouble: Trouble;

  constructor(schedule: Schedule, { trace, record, alter = (driver) => driver }: PlayOptions) {
    this.#schedule = schedule;
    this.#clock = new WorldClock(() => {
      this.history.look();
    });
    this.history = new History(
      () => this.#clock.now,
      schedule,
      (client) => (this.#clients[client] as Client).process,
    );
    this.history.tellLease = (key, number) => {
      record?.(`lock:${key}`, { kind: "held", number });
    };
    this.#trace = trace
      ? (line) => {
          trace(`${this.#clock.now.toFixed(3)} ${line}`);
        }
      : () => undefined;
    const { seed, nodes, clients, peaceAt } = schedule;
    this.#machines = nodes.map(
      (setup, index) => new ServerMachine(this.#clock, index, setup, seed * 16 + 15 - index, record),
    );
    const servers = this.#machines.map(({ server }) => server);
    const hasRoom = schedule.engine === "server" && ["read-write", "semaphore"].includes(schedule.kind);
    this.history.rooms = servers.flatMap((server) =>
      hasRoom ? keysIn(schedule.steps).map((key) => new ServerRoom(this.history, server, key)) : [],
    );
    const processes = new Map<number, ProcessMachine>();
    const drivers = new Map<ProcessMachine, Driver>();
    this.#clients = clients.map((setup, index) => {
      const process =
        processes.get(setup.process) ?? new ProcessMachine(this.#clock, index, setup, schedule, servers);
      processes.set(setup.process, process);
      const driver = drivers.get(process) ?? alter(process.driver);
      drivers.set(process, driver);
      return new Client(index, process, setup, driver);
    });
    this.#callers = new Callers(this.history, this.#clients, this.#trace);
    const latches = watchLatches(schedule, this.history, this.#machines, this.#clients);
    this.#latchCallers = new LatchCallers(this.history, schedule.limit ?? 1, latches, this.#trace);
    this.history.rooms = [...this.history.rooms, ...Array.from(latches.values(), ({ history }) => history)];
    this.#trouble = new Trouble({
      clock: this.#clock,
      history: this.history,
      machines: this.#machines,
      clients: this.#clients,
      peaceAt,
    });
  }

  get commands(): number {
    return [...new Set(this.#clients.map(({ process }) => process.gate))].reduce(
      (sum, { sent }) => sum + sent,
      0,
    );
  }

  async play(): Promise<void> {
    const { steps, peaceAt, weather } = this.#schedule;
    if (isFlawless(this.#schedule)) {
      this.history.expect(flawlessPatienceMs(this.#schedule));
    }
    const deafTo =
      weather === "deaf" ? "inquiry" : weather === "unheard" ? wakingWord(this.#schedule) : undefined;
    if (deafTo !== undefined) {
      this.#forEachLink((faults) => {
        faults.dropMessages((text) => text.startsWith(deafTo));
      });
    }
    for (const step of steps) {
      this.#clock.at(step.at, () => {
        this.#take(step);
      });
    }
    await this.#clock.advance(peaceAt);
    await this.#makePeace();
    await new Aftermath(this.#schedule, this.#clock, this.history).look(this.#clients, this.#machines);
  }

  #take(step: Step): void {
    this.#trace(JSON.stringify(step));
    if (isFault(step)) {
      this.#trouble.begin(step);
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
    if (isOfLatch(step)) {
      return this.#latchCallers.call(client, step);
    }
    if (isUse(step)) {
      return this.#callers.use(client, step);
    }
    return step.kind === "break" ? this.#callers.break(client, step) : this.#callers.setLimit(client, step);
  }

  /** The faults are over: everybody who lives gets every lock. */
  async #makePeace(): Promise<void> {
    this.#trace("peace");
    const { weather, steps } = this.#schedule;
    if (weather !== "unheard") {
      this.#forEachLink((faults) => {
        faults.dropReply(0);
        faults.duplicate(0, 0);
        faults.dropMessages(null);
      });
    }
    const boundMs = peaceBoundMs(this.#schedule, this.#clients);
    if (!isFlawless(this.#schedule)) {
      this.history.expect(boundMs);
    }
    await this.#agreeOnLimits();
    const keys = keysIn(steps);
    for (const client of this.#alive) {
      client.hurry();
      this.#getAll(client, keys);
    }
    const rounds = weather === "unheard" ? keys.length * this.#clients.length * 2 : 1;
    const begun = Math.max(this.#clock.now, ...steps.map(({ at }) => at)); // some come in peace
    const leftMs = (): number => this.#clock.now - begun + this.history.leftForMs;
    const ownMs = boundMs * rounds + everybodyMs + lonelyMs(this.#schedule);
    let allMs = ownMs + leftMs();
    while ((this.#busy.length > 0 || this.#clock.now < begun) && this.#clock.now < begun + allMs) {
      await this.#clock.advance(20);
      allMs = Math.max(allMs, ownMs + (this.history.leftForMs > 0 ? leftMs() : 0));
    }
    for (const { index, uses } of this.#busy) {
      for (const use of uses) {
        this.history.fail(
          "progress",
          `client ${index} has not got ${use.key} within ${allMs.toFixed(0)} ms of peace`,
        );
      }
    }
  }

  #getAll(client: Client, keys: readonly string[]): void {
    for (const use of usesInPeace(this.#schedule, client.index)) {
      void this.#callers.use(client, use);
    }
    for (const key of this.#schedule.kind === "latch" ? keys : []) {
      void this.#latchCallers.open(client, key, this.#schedule.maxTtlMs);
    }
  }

  /** An operator sets the last limit again, until he hears that it is set. */
  async #agreeOnLimits(): Promise<void> {
    const last = this.#schedule.steps.findLast((step) => step.kind === "set limit");
    const [client] = this.#alive;
    if (last?.kind === "set limit" && client) {
      for (let isSet = false, tries = 0; !isSet && tries < mostTries; tries += 1) {
        let isOver = false;
        void this.#callers.setLimit(client, last).then((was) => {
          [isSet, isOver] = [was, true];
        });
        for (let turns = 0; !isOver && turns < mostTries; turns += 1) {
          await this.#clock.advance(20);
        }
      }
    }
  }

  get #alive(): readonly Client[] {
    return this.#clients.filter(({ isDead }) => !isDead);
  }

  get #busy(): readonly Client[] {
    return this.#alive.filter(({ uses }) => uses.size > 0);
  }

  #forEachLink(action: (faults: FaultInjector) => void): void {
    for (const { process } of this.#clients) {
      process.faults.forEach(action);
    }
  }
}

/** What a message begins with that wakes who waits. */
function wakingWord({ kind }: Schedule): string {
  return kind === "latch" ? "open" : "grant";
}
