import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { startProxy, type Proxy } from "@holdfast/test-kit";

import { startChild } from "./children.ts";
import { ClientProcess } from "./client-process.ts";
import type { Handed } from "./client-protocol.ts";
import { startEnsemble, type Ensemble } from "./servers.ts";
import { FailoverWatch } from "./failover-watch.ts";
import { HistoryFile, SharedClock, type ConductorRecord, type Failover } from "../judge/history.ts";
import type { ClientSetup, Keys, Plan } from "../plan/plan.ts";
import type { ChaosServer } from "./chaos-server.ts";
import type { Succession } from "./succession.ts";

const resourceProgram = fileURLToPath(new URL("../resource.js", import.meta.url));
const resourceStartsWithinMs = 20_000;

/** The servers, the resource, the clients and the ways between them. */
export class Stage implements AsyncDisposable {
  readonly servers: readonly ChaosServer[];
  /** Where servers take each other's place. */
  readonly succession: Succession | undefined;
  readonly clock: SharedClock;
  /** By client and server. */
  readonly ways: readonly (readonly Proxy[])[];
  readonly #plan: Plan;
  readonly #folder: string;
  readonly #epoch: bigint;
  readonly #history: HistoryFile<ConductorRecord>;
  readonly #sentinels: readonly number[];
  readonly #resourcePort: number;
  readonly #clients: ClientProcess[] = [];
  readonly #endings: Endings;
  #generations = 0;
  #turns = 0;

  private constructor(parts: {
    readonly plan: Plan;
    readonly folder: string;
    readonly epoch: bigint;
    readonly ensemble: Ensemble;
    readonly ways: readonly (readonly Proxy[])[];
    readonly resourcePort: number;
    readonly endings: Endings;
  }) {
    this.#plan = parts.plan;
    this.#folder = parts.folder;
    this.#epoch = parts.epoch;
    this.servers = parts.ensemble.servers;
    this.succession = parts.ensemble.succession;
    this.#sentinels = parts.ensemble.sentinels;
    this.ways = parts.ways;
    this.#resourcePort = parts.resourcePort;
    this.#endings = parts.endings;
    this.clock = new SharedClock(parts.epoch);
    this.#history = new HistoryFile(join(parts.folder, "conductor.ndjson"));
    for (const [node, server] of this.servers.entries()) {
      server.watch((state, run) => {
        this.write({ e: "server", at: this.now(), node, state, run });
      });
    }
  }

  /** Starts everything that the plan needs. The history goes to that folder. */
  static async open(plan: Plan, folder: string): Promise<Stage> {
    const endings = new Endings();
    try {
      const stage = await Stage.#build(plan, folder, endings);
      await Promise.all(plan.clients.map((_, index) => stage.open(index)));
      return stage;
    } catch (error) {
      await endings.run();
      throw error;
    }
  }

  static async #build(plan: Plan, folder: string, endings: Endings): Promise<Stage> {
    await mkdir(folder, { recursive: true });
    const epoch = process.hrtime.bigint();
    const ensemble = await startEnsemble(plan);
    const { servers, succession } = ensemble;
    endings.add(() => ensemble.stop());
    const ways = await Promise.all(
      plan.clients.map(() => Promise.all(servers.map(({ port }) => startProxy(port)))),
    );
    endings.add(() => Promise.all(ways.flat().map((way) => way.stop())));
    const resourcePort = await startResource(join(folder, "resource.ndjson"), epoch, endings);
    const stage = new Stage({ plan, folder, epoch, ensemble, ways, resourcePort, endings });
    if (succession) {
      const told = (failover: Failover): void => {
        stage.write({ e: "failover", ...failover });
      };
      const watch = new FailoverWatch(succession, () => stage.now(), told);
      endings.add(() => {
        watch.stop();
      });
    }
    endings.add(() => Promise.all(stage.#clients.map((client) => client.kill())));
    return stage;
  }

  write(record: ConductorRecord): void {
    this.#history.write(record);
  }

  now(): number {
    return this.clock.now();
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

  /** Starts a client process anew. */
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
      ways: {
        ports: (this.ways[index] as readonly Proxy[]).map(({ port }) => port),
        servers: this.servers.map(({ port }) => port),
        sentinels: this.#sentinels,
        library: index % 2 === 0 ? ("ioredis" as const) : ("node-redis" as const),
      },
      resourcePort: this.#resourcePort,
      handover: setup.handover,
      callers: setup.callers,
      keys,
      probeWaitMs: bounds.peaceMs,
      seed: seed * 1_000 + this.#generations,
    };
    const client = await ClientProcess.start(task, {
      handed: (handed) => {
        this.#handOn(index, handed);
      },
      crashed: (how) => {
        this.write({ e: "crashed", at: this.now(), process: name, how });
      },
    });
    this.#clients[index] = client;
    return client;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#endings.run();
  }

  /** To the others in turn. A frozen one takes it when it thaws, one that is killed never does. */
  #handOn(from: number, handed: Handed): void {
    this.#turns += 1;
    const count = this.#clients.length;
    const to = (from + 1 + (this.#turns % (count - 1))) % count;
    this.client(to).tell({ order: "take", handed });
  }
}

async function startResource(path: string, epoch: bigint, endings: Endings): Promise<number> {
  const child = startChild(() => fork(resourceProgram, [path, String(epoch)], { execArgv: [] }));
  let isWanted = true;
  child.once("exit", (code, signal) => {
    if (isWanted) {
      throw new Error(`the resource ended: ${signal ?? `code ${code}`}`);
    }
  });
  endings.add(() => {
    isWanted = false;
    child.kill("SIGKILL");
  });
  const [port] = (await once(child, "message", {
    signal: AbortSignal.timeout(resourceStartsWithinMs),
  })) as [number];
  return port;
}

/** What has to be undone, the newest first. */
class Endings {
  readonly #list: (() => unknown)[] = [];

  add(ending: () => unknown): void {
    this.#list.push(ending);
  }

  async run(): Promise<void> {
    for (const ending of this.#list.splice(0).reverse()) {
      await ending();
    }
  }
}
