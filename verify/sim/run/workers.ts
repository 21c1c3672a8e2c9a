import { fork, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";

import { playSeeds, type Played } from "./seeds.ts";

/** Who plays seeds: this process, or several others beside it. */
export interface Crew extends AsyncDisposable {
  readonly size: number;
  /** @param member from 0; one job at a time each */
  play(member: number, seeds: readonly number[]): Promise<Played>;
}

export function openCrew(size: number): Crew {
  return size === 1
    ? { size, play: (_, seeds) => playSeeds(seeds), [Symbol.asyncDispose]: async () => {} }
    : new Processes(size);
}

class Processes implements Crew {
  readonly #members: readonly ChildProcess[];

  constructor(size: number) {
    const program = fileURLToPath(new URL("../worker.js", import.meta.url));
    this.#members = Array.from({ length: size }, () => fork(program));
  }

  get size(): number {
    return this.#members.length;
  }

  play(member: number, seeds: readonly number[]): Promise<Played> {
    const process = this.#members[member] as ChildProcess;
    return new Promise((resolve, reject) => {
      const ended = (code: number | null): void => {
        reject(new Error(`A process that played seeds ${seeds[0]} and on ended with code ${code}`));
      };
      process.once("exit", ended);
      process.once("message", (played) => {
        process.off("exit", ended);
        resolve(played as Played);
      });
      process.send(seeds);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(
      this.#members.map(async (member) => {
        if (member.connected) {
          const gone = new Promise((resolve) => member.once("exit", resolve));
          member.disconnect();
          await gone;
        }
      }),
    );
  }
}
