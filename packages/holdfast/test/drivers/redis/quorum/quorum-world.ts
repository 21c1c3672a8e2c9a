import { createLocks, isLockError, type Lease, type Locks } from "holdfast";
import { redlock } from "holdfast/redis";
import { faulty, manualRandom, twin, type Faults, type Twin } from "holdfast/testing";

import { Gate, gated } from "./gate.ts";
import { History } from "./history.ts";
import type { ClientSetup, Fault, NodeSetup, Schedule, Step, Use } from "./schedule.ts";
import { ClockView, WorldClock } from "./world-clock.ts";

const commandTimeoutMs = 400;
const wallStart = 1_700_000_000_000;
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

/** A machine with a server on it. */
class ServerMachine {
  readonly clock: ClockView;
  readonly server: Twin;

  constructor(world: WorldClock, index: number, { offsetMs, rate, durable }: NodeSetup, seed: number) {
    this.clock = new ClockView(world, { rate, wall: wallStart + offsetMs });
    const random = manualRandom(seed);
    this.server = twin({ clock: this.clock, random, name: `n${index}`, durable, upForMs: 3_600_000 });
  }
}

/** A process that locks, and its connections to all nodes. */
class ClientMachine {
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

class QuorumWorld {
  readonly history: History;
  readonly #schedule: Schedule;
  readonly #clock: WorldClock;
  readonly #machines: readonly ServerMachine[];
  readonly #clients: readonly ClientMachine[];
  readonly #trace: (line: string) => void;
  /** So many hold a frozen thing frozen. */
  readonly #freezes = new Map<string, number>();

  constructor(schedule: Schedule, trace?: (line: string) => void) {
    this.#schedule = schedule;
    this.#clock = new WorldClock(() => {
      this.history.look();
    });
    this.history = new History(() => this.#clock.now, schedule.weather);
    this.#trace = (line) => trace?.(`${this.#clock.now.toFixed(3)} ${line}`);
    const { seed, nodes, clients } = schedule;
    this.#machines = nodes.map(
      (setup, index) => new ServerMachine(this.#clock, index, setup, seed * 16 + 15 - index),
    );
    const servers = this.#machines.map(({ server }) => server);
    this.#clients = clients.map(
      (setup, index) => new ClientMachine(this.#clock, index, setup, schedule, servers),
    );
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
    switch (step.kind) {
      case "acquire":
      case "try": {
        const client = this.#client(step.client);
        if (!client.isDead) {
          client.gate.pass(() => {
            void this.#use(client, step);
          });
        }
        return;
      }
      default:
        this.#break(step);
    }
  }

  // What callers do.

  async #use(client: ClientMachine, use: Use): Promise<void> {
    client.uses.add(use);
    const lease = await this.#acquire(client, use);
    if (lease) {
      this.#trace(`client ${client.index} granted ${use.key} ${lease.fencingToken}`);
      this.history.granted(client.index, lease);
      await this.#hold(client, use, lease);
    }
    client.uses.delete(use);
  }

  async #acquire(
    client: ClientMachine,
    { kind, key, ttlMs, waitMs, renew, abortMs }: Use,
  ): Promise<Lease | null> {
    const { locks, clock, index } = client;
    const controller = new AbortController();
    const patience =
      abortMs === undefined || kind === "try"
        ? undefined
        : clock.setTimer(() => {
            controller.abort(impatience);
          }, abortMs);
    const waited = kind === "try" ? () => undefined : this.history.waits(index, key);
    try {
      return await (kind === "try"
        ? locks.tryAcquire(key, { ttlMs, renew })
        : locks.acquire(key, { ttlMs, waitMs, renew, signal: controller.signal }));
    } catch (error) {
      this.#trace(`client ${index} was refused ${key}: ${String(error)}`);
      const isHasty = kind === "acquire" && waitMs < hastyMs;
      this.#judge(error, isHasty ? ["wait-timeout", "quorum-not-reached"] : ["wait-timeout"]);
      return null;
    } finally {
      waited();
      clock.clearTimer(patience);
    }
  }

  async #hold(client: ClientMachine, { holdMs, extendAtMs, ttlMs }: Use, lease: Lease): Promise<void> {
    if (extendAtMs !== undefined) {
      await client.pause(extendAtMs);
      await lease.extend(ttlMs).catch((error: unknown) => {
        this.#judge(error, []);
      });
    }
    await client.pause(holdMs - (extendAtMs ?? 0));
    this.#trace(
      `client ${client.index} releases ${lease.fencingToken} with ${lease.remainingMs().toFixed(1)} ms left`,
    );
    const isOurs = lease.remainingMs() > 0;
    this.history.released(lease);
    const wasOurs = await lease.release().catch((error: unknown) => {
      this.#judge(error, []);
      return true;
    });
    if (isOurs && !wasOurs) {
      this.history.complain(`client ${client.index} lost ${lease.fencingToken}`);
    }
  }

  #judge(error: unknown, usual: readonly string[]): void {
    if (error === impatience || (isLockError(error) && usual.includes(error.code))) {
      return;
    }
    if (isLockError(error) && troubles.has(error.code)) {
      this.history.complain(String(error));
    } else {
      this.history.fail(error instanceof Error ? String(error.stack) : String(error));
    }
  }

  // What goes wrong.

  #break(fault: Fault): void {
    switch (fault.kind) {
      case "freeze client":
        this.#freezeClient(this.#client(fault.client), fault.forMs, fault.sleeps);
        return;
      case "kill client":
        this.#client(fault.client).die(fault.silent);
        this.history.gone(fault.client);
        return;
      case "freeze node":
        for (const client of this.#clients) {
          this.#cut(client, fault.node, fault.forMs);
        }
        return;
      case "cut":
        this.#cut(this.#client(fault.client), fault.node, fault.forMs);
        return;
      case "restart node":
        this.#restart(fault.node, fault.keepData, fault.downMs);
        return;
      case "step node":
        this.#machine(fault.node).clock.step(fault.ms);
        return;
      default:
        this.#disturb(fault, this.#client(fault.client));
    }
  }

  #disturb(fault: Extract<Fault, { client: number; node: number }>, client: ClientMachine): void {
    const { node } = fault;
    const faults = client.faults[node] as Faults;
    switch (fault.kind) {
      case "slow": {
        const [requestMs, replyMs, messageMs] = fault.delaysMs;
        faults.delay({ requestMs, replyMs, messageMs });
        this.#later(fault.forMs, () => {
          client.restoreDelay(node);
        });
        return;
      }
      case "lose replies":
        faults.dropReply(fault.count, fault.mode);
        return;
      case "lose messages":
        faults.dropMessages((text) => text.startsWith(fault.word));
        this.#later(fault.forMs, () => {
          faults.dropMessages(null);
        });
        return;
      case "duplicate":
        faults.duplicate(fault.count, fault.afterMs);
        return;
      case "drop subscription":
        faults.dropSubscription();
        return;
      case "cut":
        return;
    }
  }

  #freezeClient(client: ClientMachine, forMs: number, sleeps: boolean): void {
    if (!client.isDead && client.gate.isOpen) {
      client.freeze(sleeps);
      this.#later(forMs, () => {
        client.thaw();
      });
    }
  }

  /** Nothing passes between a client and a node. */
  #cut(client: ClientMachine, node: number, forMs: number): void {
    const link = `${client.index} ${node}`;
    const faults = client.faults[node] as Faults;
    this.#freezes.set(link, (this.#freezes.get(link) ?? 0) + 1);
    faults.freeze();
    this.#later(forMs, () => {
      const left = (this.#freezes.get(link) ?? 0) - 1;
      this.#freezes.set(link, left);
      if (left === 0) {
        faults.thaw();
      }
    });
  }

  #restart(node: number, keepData: boolean, downMs: number): void {
    this.#machine(node).server.restart({ keepData });
    if (downMs > 0) {
      const refuse = (error: Error | null): void => {
        for (const { faults } of this.#clients) {
          faults[node]?.refuse(error);
        }
      };
      refuse(new Error("connect ECONNREFUSED"));
      this.#later(downMs, () => {
        refuse(null);
      });
    }
  }

  /** At the latest when peace comes. */
  #later(ms: number, action: () => void): void {
    this.#clock.at(Math.min(this.#clock.now + ms, this.#schedule.peaceAt), action);
  }

  // Peace.

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
        void this.#use(client, use);
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

  // The end.

  async #end(): Promise<void> {
    await this.#clock.advance(settlingMs);
    if (!this.#schedule.steps.some(({ kind }) => kind === "duplicate")) {
      this.#lookForLeftovers((text) => this.#alive.some(({ id }) => text.includes(id)));
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
    this.#lookForLeftovers(() => true);
  }

  #lookForLeftovers(isOurs: (text: string) => boolean): void {
    for (const { server } of this.#machines) {
      for (const key of server.keys()) {
        const value = JSON.stringify(server.dump(key));
        if (!/^holdfast:(fence|client):/.test(key) && isOurs(value)) {
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

  #client(index: number): ClientMachine {
    return this.#clients[index] as ClientMachine;
  }

  #machine(index: number): ServerMachine {
    return this.#machines[index] as ServerMachine;
  }

  #forEachLink(action: (faults: Faults) => void): void {
    for (const { faults } of this.#clients) {
      faults.forEach(action);
    }
  }
}

const impatience = new Error("the caller lost its patience");
/** What an engine in trouble may be told by. */
const troubles: ReadonlySet<string> = new Set([
  "engine-unavailable",
  "quorum-not-reached",
  "lease-lost",
  "closed",
]);
/** Where nothing goes wrong a free lock is granted this soon: before anybody asks again by himself. */
const calmPatienceMs = 100;
/** Who waits less may be gone before the nodes have answered. */
const hastyMs = 100;
/** All who wait get it in turn. */
const everybodyMs = 1_000;
const settlingMs = 3_000;
