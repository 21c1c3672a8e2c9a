import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { ServerClocks, startProxy, type Proxy } from "@holdfast/test-kit";

import { startChild } from "./children.ts";
import { ClientProcess } from "./client-process.ts";
import type { HandedOver } from "./client-protocol.ts";
import type { ServerGroup } from "./server-group.ts";
import { startServerGroup } from "./servers.ts";
import { FailoverWatch } from "./failover-watch.ts";
import { HistoryFile, SharedClock, type CoordinatorRecord, type Failover } from "../judge/history.ts";
import type { ClientSetup, Keys, Plan } from "../plan/plan.ts";
import { engines } from "../plan/engines.ts";
import type { Engine } from "../plan/engine.ts";
import { ChaosClock } from "./chaos-clock.ts";
import type { ChaosServer } from "./chaos-server.ts";
import type { FailoverGroups } from "./succession.ts";

const resourceProgram = fileURLToPath(new URL("../resource.js", import.meta.url));
const resourceStartTimeoutMs = 20_000;

/** The servers, the resource, the clients, and the links between them. */
export class Environment implements AsyncDisposable {
  readonly servers: readonly ChaosServer[];
  /** The groups of servers that replace each other. */
  readonly failovers: FailoverGroups | undefined;
  readonly clock: SharedClock;
  /** The wall clocks of the clients. */
  readonly clientClocks: readonly ChaosClock[];
  /** By client and server. */
  readonly links: readonly (readonly Proxy[])[];
  readonly #plan: Plan;
  readonly #folder: string;
  readonly #epoch: bigint;
  readonly #history: HistoryFile<CoordinatorRecord>;
  readonly #sentinels: readonly number[];
  readonly #clocks: ServerClocks;
  readonly #resourcePort: number;
  readonly #clients: ClientProcess[] = [];
  readonly #cleanups: Cleanups;
  #generations = 0;
  #handOverCount = 0;

  private constructor(options: {
    readonly plan: Plan;
    readonly folder: string;
    readonly epoch: bigint;
    readonly ensemble: ServerGroup;
    readonly ways: readonly (readonly Proxy[])[];
    readonly clocks: ServerClocks;
    readonly resourcePort: number;
    readonly endings: Cleanups;
  }) {
    this.#plan = options.plan;
    this.#folder = options.folder;
    this.#epoch = options.epoch;
    this.servers = options.ensemble.servers;
    this.failovers = options.ensemble.failovers;
    this.#sentinels = options.ensemble.sentinels;
    this.links = options.ways;
    this.#clocks = options.clocks;
    this.clientClocks = options.clocks.clocks.map((clock) => new ChaosClock(clock));
    this.#resourcePort = options.resourcePort;
    this.#cleanups = options.endings;
    this.clock = new SharedClock(options.epoch);
    this.#history = new HistoryFile(join(options.folder, "coordinator.ndjson"));
    for (const [node, server] of this.servers.entries()) {
      server.watch((state, run, durable) => {
        this.write({ e: "server", at: this.now(), node, state, run, durable });
      });
    }
  }

  /** Starts all processes of the plan. The history goes to the folder. */
  static async open(plan: Plan, folder: string): Promise<Environment> {
    const cleanups = new Cleanups();
    try {
      const environment = await Environment.#build(plan, folder, cleanups);
      await Promise.all(plan.clients.map((_, index) => environment.open(index)));
      return environment;
    } catch (error) {
      await cleanups.run();
      throw error;
    }
  }

  static async #build(plan: Plan, folder: string, cleanups: Cleanups): Promise<Environment> {
    await mkdir(folder, { recursive: true });
    const epoch = process.hrtime.bigint();
    const serverGroup = await startServerGroup(plan);
    const { servers, failovers } = serverGroup;
    cleanups.add(() => serverGroup.stop());
    const links = await Promise.all(
      plan.clients.map(() => Promise.all(servers.map(({ port }) => startProxy(port)))),
    );
    cleanups.add(() => Promise.all(links.flat().map((link) => link.stop())));
    const clocks = await ServerClocks.make(plan.clients.length);
    cleanups.add(() => clocks[Symbol.asyncDispose]());
    const resourcePort = await startResource(join(folder, "resource.ndjson"), epoch, cleanups);
    const environment = new Environment({
      plan,
      folder,
      epoch,
      ensemble: serverGroup,
      ways: links,
      clocks,
      resourcePort,
      endings: cleanups,
    });
    if (failovers) {
      const recordFailover = (failover: Failover): void => {
        environment.write({ e: "failover", ...failover });
      };
      const watch = new FailoverWatch(failovers, () => environment.now(), recordFailover);
      cleanups.add(() => {
        watch.stop();
      });
    }
    cleanups.add(() => Promise.all(environment.#clients.map((client) => client.kill())));
    return environment;
  }

  write(record: CoordinatorRecord): void {
    this.#history.write(record);
  }

  now(): number {
    return this.clock.now();
  }

  get engine(): Engine {
    return engines[this.#plan.engine];
  }

  get keys(): Keys {
    return this.#plan.keys;
  }

  get clients(): readonly ClientProcess[] {
    return this.#clients;
  }

  client(index: number): ClientProcess {
    return this.#clients[index] as ClientProcess;
  }

  /** Starts a new client process. */
  async open(index: number): Promise<ClientProcess> {
    const { engine, without, keys, seed, bounds } = this.#plan;
    const setup = this.#plan.clients[index] as ClientSetup;
    this.#generations += 1;
    const name = `client-${index}.${this.#generations}`;
    const task = {
      name,
      index,
      historyFile: join(this.#folder, `${name}.ndjson`),
      epoch: String(this.#epoch),
      engine,
      without,
      addresses: {
        ports: (this.links[index] as readonly Proxy[]).map(({ port }) => port),
        servers: this.servers.map(({ port }) => port),
        sentinels: this.#sentinels,
        client: index,
      },
      resourcePort: this.#resourcePort,
      handover: setup.handover,
      callers: setup.callers,
      keys,
      probeWaitMs: bounds.quietPeriodMs,
      seed: seed * 1_000 + this.#generations,
    };
    const listener = {
      handedOver: (handed: HandedOver) => {
        this.#handOver(index, handed);
      },
      crashed: (how: string) => {
        this.write({ e: "crashed", at: this.now(), process: name, how });
      },
    };
    // Without a step the clients use the clock of the machine.
    const steps = this.engine.faults.includes("step a client's clock");
    const variables = (steps && this.#clocks.clocks[index]?.env) || {};
    const client = await ClientProcess.start(task, listener, variables);
    this.#clients[index] = client;
    return client;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#cleanups.run();
  }

  /** Sends an item to the other clients in turn. A frozen client gets the item after the thaw, and a killed client never does. */
  #handOver(from: number, item: HandedOver): void {
    this.#handOverCount += 1;
    const count = this.#clients.length;
    const to = (from + 1 + (this.#handOverCount % (count - 1))) % count;
    this.client(to).send({ order: "take", handed: item });
  }
}

async function startResource(path: string, epoch: bigint, cleanups: Cleanups): Promise<number> {
  const child = startChild(() => fork(resourceProgram, [path, String(epoch)], { execArgv: [] }));
  let isExpectedToRun = true;
  child.once("exit", (code, signal) => {
    if (isExpectedToRun) {
      throw new Error(`the resource ended: ${signal ?? `code ${code}`}`);
    }
  });
  cleanups.add(() => {
    isExpectedToRun = false;
    child.kill("SIGKILL");
  });
  const [port] = (await once(child, "message", {
    signal: AbortSignal.timeout(resourceStartTimeoutMs),
  })) as [number];
  return port;
}

/** Cleanup functions, which run in reverse order. */
class Cleanups {
  readonly #actions: (() => unknown)[] = [];

  add(action: () => unknown): void {
    this.#actions.push(action);
  }

  async run(): Promise<void> {
    for (const action of this.#actions.splice(0).reverse()) {
      await action();
    }
  }
}
