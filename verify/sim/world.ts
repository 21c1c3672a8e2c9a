import type { Faults } from "holdfast/testing";

import { Callers } from "./callers.ts";
import { History } from "./history.ts";
import { ClientMachine, commandTimeoutMs, ServerMachine } from "./machines.ts";
import type { Schedule, Step } from "./schedule.ts";
import { Trouble } from "./trouble.ts";
import { WorldClock } from "./world-clock.ts";

/** Waiters whose messages were lost ask again within 5 s. */
const pollMs = 5_000;
/** What a node adds to the largest TTL before it votes again, and until that is noticed. */
const guardMs = 4_000;
/** Redis keeps a queue for so long after its last change. */
const queueTtlMs = 60_000;

export interface Report {
  readonly failures: readonly string[];
  readonly grants: number;
}

/** Plays a schedule to its end, and says what went wrong. The same schedule, the same report. */
export async function play(schedule: Schedule, trace?: (line: string) => void): Promise<Report> {
  const world = new QuorumWorld(schedule, trace);
  const unhandled = (reason: unknown): void => {
    world.history.fail(`unhandled rejection: ${String(reason)}`);
  };
  process.on("unhandledRejection", unhandled);
  try {
    await world.play();
  } finally {
    process.off("unhandledRejection", unhandled);
  }
  const { failures, grants } = world.history;
  return { failures, grants };
}

class QuorumWorld {
  readonly history: History;
  readonly #schedule: Schedule;
  readonly #clock: WorldClock;
  readonly #machines: readonly ServerMachine[];
  readonly #clients: readonly ClientMachine[];
  readonly #trace: (line: string) => void;
  readonly #callers: Callers;
  readonly #trouble: Trouble;

  constructor(schedule: Schedule, trace?: (line: string) => void) {
    this.#schedule = schedule;
    this.#clock = new WorldClock(() => {
      this.history.look();
    });
    this.history = new History(() => this.#clock.now, schedule.weather);
    this.#trace = (line) => trace?.(`${this.#clock.now.toFixed(3)} ${line}`);
    const { seed, nodes, clients, peaceAt } = schedule;
    this.#machines = nodes.map(
      (setup, index) => new ServerMachine(this.#clock, index, setup, seed * 16 + 15 - index),
    );
    const servers = this.#machines.map(({ server }) => server);
    this.#clients = clients.map(
      (setup, index) => new ClientMachine(this.#clock, index, setup, schedule, servers),
    );
    this.#callers = new Callers(this.history, this.#trace);
    this.#trouble = new Trouble({
      clock: this.#clock,
      history: this.history,
      machines: this.#machines,
      clients: this.#clients,
      peaceAt,
    });
  }

  async play(): Promise<void> {
    const { steps, peaceAt, weather, nodeTimeoutMs } = this.#schedule;
    if (weather === "calm" || weather === "duel") {
      this.history.expect(calmPatienceMs + nodeTimeoutMs);
    }
    if (weather === "deaf") {
      this.#forEachLink((faults) => {
        faults.dropMessages((text) => text.startsWith("inquiry"));
      });
    }
    for (const step of steps) {
      this.#clock.at(step.at, () => {
        this.#take(step);
      });
    }
    await this.#clock.advance(peaceAt);
    await this.#makePeace();
    await this.#end();
  }

  #take(step: Step): void {
    this.#trace(JSON.stringify(step));
    if ("key" in step) {
      const client = this.#clients[step.client] as ClientMachine;
      if (!client.isDead) {
        client.gate.pass(() => {
          void this.#callers.use(client, step);
        });
      }
    } else {
      this.#trouble.begin(step);
    }
  }

  /** The faults are over: everybody who lives gets every lock. */
  async #makePeace(): Promise<void> {
    this.#trace("peace");
    this.#forEachLink((faults) => {
      faults.dropReply(0);
      faults.duplicate(0, 0);
      faults.dropMessages(null);
    });
    const boundMs = this.#peaceBoundMs();
    const { weather, steps } = this.#schedule;
    if (weather === "storm" || weather === "deaf") {
      this.history.expect(boundMs);
    }
    for (const client of this.#alive) {
      client.hurry();
      for (const key of new Set(steps.flatMap((step) => ("key" in step ? [step.key] : [])))) {
        const { index } = client;
        const use = {
          kind: "acquire",
          client: index,
          key,
          ttlMs: this.#schedule.maxTtlMs,
          waitMs: Infinity,
          renew: true,
          holdMs: 0,
        } as const;
        void this.#callers.use(client, use);
      }
    }
    const end = this.#clock.now + boundMs + everybodyMs;
    while (this.#busy.length > 0 && this.#clock.now < end) {
      await this.#clock.advance(20);
    }
    for (const { index, uses } of this.#busy) {
      for (const use of uses) {
        this.history.fail(
          `client ${index} has not got ${use.key} within ${(boundMs + everybodyMs).toFixed(0)} ms of peace`,
        );
      }
    }
  }

  #peaceBoundMs(): number {
    const { steps, weather, maxTtlMs } = this.#schedule;
    if (weather === "calm" || weather === "duel") {
      return calmPatienceMs + this.#schedule.nodeTimeoutMs;
    } else if (weather === "deaf") {
      return maxTtlMs / 2 + 300; // who has some votes asks again after a third of the TTL, and half of that at random
    }
    let boundMs = pollMs + 1_000;
    for (const { isDead, uses } of this.#clients) {
      for (const { ttlMs } of isDead ? uses : []) {
        boundMs += ttlMs + pollMs;
      }
    }
    const hasForgetful = steps.some(({ kind }) => kind === "restart node" || kind === "step node");
    const hasDuplicates = steps.some(({ kind }) => kind === "duplicate");
    return boundMs + (hasForgetful ? maxTtlMs + guardMs : 0) + (hasDuplicates ? maxTtlMs : 0);
  }

  async #end(): Promise<void> {
    await this.#clock.advance(settlingMs);
    const { steps } = this.#schedule;
    if (!steps.some(({ kind }) => kind === "duplicate")) {
      // A node whose clock was set back keeps for longer what nobody came to take back while it was silent.
      const kept = steps.map((step) => (step.kind === "step node" && step.ms < 0 ? step.node : -1));
      const machines = this.#machines.filter((_, index) => !kept.includes(index));
      this.#lookForLeftovers(machines, (text) => this.#alive.some(({ id }) => text.includes(id)));
    }
    const closing = Promise.all(this.#alive.map(({ locks }) => locks.close()));
    await this.#clock.advance(commandTimeoutMs * 2);
    await closing;
    for (const { clock, index } of this.#alive) {
      if (clock.timers > 0) {
        this.history.fail(`client ${index} left ${clock.timers} timers`);
      }
    }
    await this.#clock.advance(this.#schedule.maxTtlMs * 2 + queueTtlMs + 25_000);
    this.#lookForLeftovers(this.#machines, () => true);
  }

  #lookForLeftovers(machines: readonly ServerMachine[], isOurs: (text: string) => boolean): void {
    for (const { server, clock, wasAway } of machines) {
      for (const key of server.keys()) {
        const value = JSON.stringify(server.dump(key));
        // Who waits until a moment is not asked to leave the queue of a node that was away until then.
        const isDead = wasAway && key.startsWith("holdfast:queue:") && !mayWait(value, clock.wall());
        if (!/^holdfast:(fence|client):/.test(key) && isOurs(value) && !isDead) {
          this.history.fail(`left on ${server.connect().name}: ${key} ${value}`);
        }
      }
    }
  }

  get #alive(): readonly ClientMachine[] {
    return this.#clients.filter(({ isDead }) => !isDead);
  }

  get #busy(): readonly ClientMachine[] {
    return this.#alive.filter(({ uses }) => uses.size > 0);
  }

  #forEachLink(action: (faults: Faults) => void): void {
    for (const { faults } of this.#clients) {
      faults.forEach(action);
    }
  }
}

/** Where nothing goes wrong a free lock is granted this soon: before anybody asks again by himself. */
const calmPatienceMs = 100;
/** All who wait get it in turn. */
const everybodyMs = 1_000;
const settlingMs = 3_000;

/** Whether somebody in a queue is still served there: members end with their deadline, 0 for none, and the kind of their channel. */
function mayWait(queue: string, wall: number): boolean {
  const deadlines = Array.from(queue.matchAll(/ (\d+) [sp]"/g), ([, deadline]) => Number(deadline));
  return deadlines.some((deadline) => deadline === 0 || deadline >= wall);
}
