import type { Load, Measurement, Memory } from "./protocol.ts";
import type { Entrant } from "./contestant-list.ts";
import { sum } from "../measure/statistics.ts";
import { portsOf, type Site } from "../suites/suite.ts";
import { WorkerProcess } from "./worker-process.ts";

/** Workers of one contestant, told the same and ended together. */
export class Crew implements AsyncDisposable {
  readonly settings: string;
  readonly #workers: readonly WorkerProcess[];

  private constructor(workers: readonly WorkerProcess[]) {
    this.#workers = workers;
    this.settings = workers[0]?.settings ?? "";
  }

  static async open(entrant: Entrant, site: Site, size: number): Promise<Crew> {
    const cpus = size === 1 ? site.placement.loneWorkerCpus : null;
    const opening = Array.from({ length: size }, () => WorkerProcess.open(entrant, portsOf(site), cpus));
    const settled = await Promise.allSettled(opening);
    const crew = new Crew(settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : [])));
    const failed = settled.find((one) => one.status === "rejected");
    if (failed) {
      await crew[Symbol.asyncDispose]();
      throw failed.reason;
    }
    return crew;
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

  /** Of all its workers together. */
  async memory(): Promise<Memory> {
    const all = await Promise.all(this.#workers.map((worker) => worker.memory()));
    return { used: sum(all.map(({ used }) => used)), resident: sum(all.map(({ resident }) => resident)) };
  }

  async stop(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.stop()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker[Symbol.asyncDispose]()));
  }
}
