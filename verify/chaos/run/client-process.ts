import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import type { ClientTask, FromClient, Handed, ToClient } from "./client-protocol.ts";
import { startChild } from "./children.ts";

const program = fileURLToPath(new URL("../client.js", import.meta.url));
const startWithinMs = 30_000;
const stopWithinMs = 15_000;

export interface ClientListener {
  handed(handed: Handed): void;
  /** It ended, and we had not killed it. */
  crashed(how: string): void;
}

/** The parent's end of one client process. */
export class ClientProcess {
  readonly name: string;
  readonly #child: ChildProcess;
  #isExpectedToEnd = false;
  #quiet: { readonly round: number; readonly heard: () => void } | undefined;
  #ambushed: (() => void) | undefined;

  private constructor(name: string, child: ChildProcess, listener: ClientListener) {
    this.name = name;
    this.#child = child;
    child.on("message", (message: FromClient) => {
      if (message.said === "hand") {
        listener.handed(message.handed);
      } else if (message.said === "ambushed") {
        this.#ambushed?.();
      } else if (message.said === "quiet" && message.round === this.#quiet?.round) {
        this.#quiet.heard();
      }
    });
    child.once("exit", (code, signal) => {
      if (!this.#isExpectedToEnd) {
        listener.crashed(signal ?? `code ${code}`);
      }
    });
  }

  static async start(task: ClientTask, listener: ClientListener): Promise<ClientProcess> {
    const child = startChild(() =>
      fork(program, [JSON.stringify(task)], {
        execArgv: ["--expose-gc"],
        stdio: ["ignore", "ignore", "inherit", "ipc"],
      }),
    );
    const tooLate = AbortSignal.timeout(startWithinMs);
    const client = new ClientProcess(task.name, child, listener);
    await once(child, "message", { signal: tooLate });
    return client;
  }

  get isUp(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  tell(order: ToClient): void {
    if (this.isUp && this.#child.connected) {
      this.#child.send(order, undefined, undefined, () => undefined);
    }
  }

  /** Resolves with whether all its callers came to rest, and it got every lock. */
  async rest(round: number, withinMs: number): Promise<boolean> {
    const quiet = new Promise<true>((resolve) => {
      this.#quiet = {
        round,
        heard: () => {
          resolve(true);
        },
      };
    });
    this.tell({ order: "peace", round });
    return Promise.race([quiet, pause(withinMs, false, { ref: false })]);
  }

  /** Frozen in the middle of its work, if it gets there in time; else wherever it is. */
  async ambush(withinMs: number): Promise<void> {
    const there = new Promise<void>((resolve) => {
      this.#ambushed = resolve;
    });
    this.tell({ order: "ambush", withinMs });
    await Promise.race([there, pause(withinMs, undefined, { ref: false })]);
    this.freeze();
  }

  freeze(): void {
    this.#child.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child.kill("SIGCONT");
  }

  async kill(): Promise<void> {
    this.#isExpectedToEnd = true;
    if (this.isUp) {
      const gone = once(this.#child, "exit");
      this.#child.kill("SIGKILL");
      await gone;
    }
  }

  /** It closes its locks and ends by itself, or is killed. */
  async stop(): Promise<void> {
    this.#isExpectedToEnd = true;
    if (!this.isUp) {
      return;
    }
    const gone = once(this.#child, "exit");
    this.tell({ order: "stop" });
    const tooLong = setTimeout(() => this.#child.kill("SIGKILL"), stopWithinMs);
    await gone;
    clearTimeout(tooLong);
  }
}
