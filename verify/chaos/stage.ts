import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { ServerClocks, startProxy, type Proxy, type ServerClock } from "@holdfast/lab";

import { startChild, temporary } from "./children.ts";
import { ClientProcess } from "./client-process.ts";
import type { Handed } from "./client-protocol.ts";
import { HistoryFile, SharedClock, type ConductorRecord } from "./history.ts";
import type { ClientSetup, Plan } from "./plan.ts";
import { ChaosServer } from "./server.ts";

const resourceProgram = fileURLToPath(new URL("./resource.js", import.meta.url));
const resourceStartsWithinMs = 20_000;

/** The servers, the resource, the clients and the ways between them. */
export class Stage implements AsyncDisposable {
  readonly servers: readonly ChaosServer[];
  readonly clock: SharedClock;
  /** By client and server. */
  readonly ways: readonly (readonly Proxy[])[];
  readonly #plan: Plan;
  readonly #folder: string;
  readonly #epoch: bigint;
  readonly #history: HistoryFile<ConductorRecord>;
  readonly #resourcePort: number;
  readonly #clients: ClientProcess[] = [];
  readonly #endings: Endings;
  #generations = 0;
  #turns = 0;

  private constructor(parts: {
    readonly plan: Plan;
    readonly folder: string;
    readonly epoch: bigint;
    readonly servers: readonly ChaosServer[];
    readonly ways: readonly (readonly Proxy[])[];
    readonly resourcePort: number;
    readonly endings: Endings;
  }) {
    this.#plan = parts.plan;
    this.#folder = parts.folder;
    this.#epoch = parts.epoch;
    this.servers = parts.servers;
    this.ways = parts.ways;
    this.#resourcePort = parts.resourcePort;
    this.#endings = parts.endings;
    this.clock = new SharedClock(parts.epoch);
    this.#history = new HistoryFile(join(parts.folder, "conductor.ndjson"));
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
    const data = temporary(await mkdtemp(join(tmpdir(), "holdfast-chaos-")));
    endings.add(() => rm(data, { recursive: true, force: true }));
    const clocks = await ServerClocks.make(plan.nodes.length);
    endings.add(() => clocks[Symbol.asyncDispose]());
    const servers = await Promise.all(
      plan.nodes.map((setup, index) =>
        ChaosServer.start(setup, join(data, `server-${index}`), clocks.clocks[index] as ServerClock),
      ),
    );
    endings.add(() => Promise.all(servers.map((server) => server.stop())));
    const ways = await Promise.all(
      plan.clients.map(() => Promise.all(servers.map(({ port }) => startProxy(port)))),
    );
    endings.add(() => Promise.all(ways.flat().map((way) => way.stop())));
    const resourcePort = await startResource(join(folder, "resource.ndjson"), epoch, endings);
    const stage = new Stage({ plan, folder, epoch, servers, ways, resourcePort, endings });
    endings.add(() => Promise.all(stage.#clients.map((client) => client.kill())));
    return stage;
  }

  write(record: ConductorRecord): void {
    this.#history.write(record);
  }

  now(): number {
    return this.clock.now();
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
      ports: (this.ways[index] as readonly Proxy[]).map(({ port }) => port),
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
