import type { Load, Measurement, Memory } from "./protocol.ts";
import type { ContestantName } from "./contestant-list.ts";
import { sum } from "../measure/statistics.ts";
import { portsOf, type EngineSite, type Site } from "../suites/suite.ts";
import { WorkerProcess, type Target } from "./worker-process.ts";

/** Workers of one contestant, which run the same load and end together. */
export class WorkerGroup implements AsyncDisposable {
  readonly settings: string;
  readonly #workers: readonly WorkerProcess[];

  private constructor(workers: readonly WorkerProcess[]) {
    this.#workers = workers;
    this.settings = workers[0]?.settings ?? "";
  }

  static async open(contestant: ContestantName, site: Site | EngineSite, size: number): Promise<WorkerGroup> {
    const cpus = size === 1 ? site.placement.singleWorkerCpus : null;
    const target = targetOf(site);
    const opening = Array.from({ length: size }, () => WorkerProcess.open(contestant, target, cpus));
    const settled = await Promise.allSettled(opening);
    const workerGroup = new WorkerGroup(
      settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : [])),
    );
    const failed = settled.find((one) => one.status === "rejected");
    if (failed) {
      await workerGroup[Symbol.asyncDispose]();
      throw failed.reason;
    }
    return workerGroup;
  }

  async start(load: Load): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.start(load)));
  }

  async begin(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.begin()));
  }

  async end(): Promise<Measurement[]> {
    return Promise.all(this.#workers.map((worker) => worker.end()));
  }

  /** The sums over all workers. */
  async memory(): Promise<Memory> {
    const samples = await Promise.all(this.#workers.map((worker) => worker.memory()));
    return {
      used: sum(samples.map(({ used }) => used)),
      resident: sum(samples.map(({ resident }) => resident)),
    };
  }

  async stop(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.stop()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker[Symbol.asyncDispose]()));
  }
}

export function targetOf(site: Site | EngineSite): Target {
  if ("engine" in site) return { topology: site.engine, address: site.address };
  const ports = portsOf(site);
  return { topology: ports.length === 1 ? "server" : "quorum", address: ports.join(",") };
}
