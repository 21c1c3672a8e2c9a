import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { limitMs, endProcess, waitUntil } from "@holdfast/test-kit";

const program = fileURLToPath(new URL("./fleet-pod.mjs", import.meta.url));
const built = fileURLToPath(new URL("../../dist/index.js", import.meta.url));

export interface FleetOptions {
  readonly key: string;
  readonly lockPorts: readonly number[];
  /** The server with the register of holders. */
  readonly registerPort: number;
  readonly tasks: number;
  readonly holdMs: number;
  /** The mean pause of a task between two turns, ms. */
  readonly pauseMs: number;
  readonly lockTimeout: number;
}

interface PodMessage {
  readonly turns?: number;
  readonly done?: number;
  readonly lost?: string;
  readonly overlap?: readonly [finder: string, other: string];
}

/** A process of a fleet. `old` uses redis-semaphore, `new` its replacement. */
export class Pod {
  readonly name: string;
  readonly library: "old" | "new";
  readonly #child: ChildProcess;
  turns = 0;
  readonly losses: string[] = [];
  readonly overlaps: (readonly [finder: string, other: string])[] = [];

  private constructor(name: string, library: "old" | "new", child: ChildProcess) {
    this.name = name;
    this.library = library;
    this.#child = child;
    child.on("message", (message: PodMessage) => this.#receive(message));
  }

  static start(name: string, library: "old" | "new", options: FleetOptions): Pod {
    if (!existsSync(built)) {
      throw new Error("The library is not built: run `npm run build`");
    }
    const { key, lockPorts, registerPort, ...more } = options;
    const args = [name, library, key, lockPorts.join(","), String(registerPort), JSON.stringify(more)];
    return new Pod(name, library, fork(program, args));
  }

  #receive({ turns, done, lost, overlap }: PodMessage): void {
    this.turns = turns ?? done ?? this.turns;
    if (lost !== undefined) {
      this.losses.push(lost);
    }
    if (overlap) {
      this.overlaps.push(overlap);
    }
  }

  /** Ends the pod after its present turns. */
  async stop(): Promise<void> {
    const exited = once(this.#child, "exit");
    this.#child.send("stop");
    const [code] = (await exited) as [number | null];
    if (code !== 0) {
      throw new Error(`pod ${this.name} ended with ${code}`);
    }
  }

  async kill(): Promise<void> {
    await endProcess(this.#child);
  }
}

/** Waits until each pod has made `count` more turns. */
export async function moreTurns(pods: readonly Pod[], count: number): Promise<void> {
  const wanted = pods.map((pod) => pod.turns + count);
  const text = `${pods.map(({ name }) => name).join(", ")} made ${count} more turns each`;
  await waitUntil(
    async () => pods.every((pod, index) => pod.turns >= (wanted[index] ?? 0)),
    text,
    limitMs(90_000),
  );
}
