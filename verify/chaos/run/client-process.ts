import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import type { ClientTask, FromClient, HandedOver, ToClient } from "./client-protocol.ts";
import { startChild } from "./children.ts";

const program = fileURLToPath(new URL("../client.js", import.meta.url));
const startTimeoutMs = 30_000;
const stopTimeoutMs = 15_000;

export interface ClientListener {
  handedOver(handed: HandedOver): void;
  /** The process ended without a kill. */
  crashed(how: string): void;
}

/** The parent's side of one client process. */
export class ClientProcess {
  readonly name: string;
  readonly #child: ChildProcess;
  #isExpectedToEnd = false;
  #quiescence: { readonly round: number; readonly settled: () => void } | undefined;
  #awaitingFreeze: (() => void) | undefined;

  private constructor(name: string, child: ChildProcess, listener: ClientListener) {
    this.name = name;
    this.#child = child;
    child.on("message", (message: FromClient) => {
      if (message.said === "hand") {
        listener.handedOver(message.handed);
      } else if (message.said === "ready-to-freeze") {
        this.#awaitingFreeze?.();
      } else if (message.said === "quiet" && message.round === this.#quiescence?.round) {
        this.#quiescence.settled();
      }
    });
    child.once("exit", (code, signal) => {
      if (!this.#isExpectedToEnd) {
        listener.crashed(signal ?? `code ${code}`);
      }
    });
  }

  /** @param variables environment variables in addition to those of this process */
  static async start(
    task: ClientTask,
    listener: ClientListener,
    variables: Readonly<Record<string, string>>,
  ): Promise<ClientProcess> {
    const child = startChild(() =>
      fork(program, [JSON.stringify(task)], {
        execArgv: ["--expose-gc"],
        stdio: ["ignore", "ignore", "inherit", "ipc"],
        env: { ...process.env, ...variables },
      }),
    );
    const tooLate = AbortSignal.timeout(startTimeoutMs);
    const client = new ClientProcess(task.name, child, listener);
    await once(child, "message", { signal: tooLate });
    return client;
  }

  get isUp(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  send(order: ToClient): void {
    if (this.isUp && this.#child.connected) {
      this.#child.send(order, undefined, undefined, () => undefined);
    }
  }

  /** Resolves with whether all callers came to rest and the process acquired every lock. */
  async awaitQuiescence(round: number, withinMs: number): Promise<boolean> {
    const quiet = new Promise<true>((resolve) => {
      this.#quiescence = {
        round,
        settled: () => {
          resolve(true);
        },
      };
    });
    this.send({ order: "quiet", round });
    return Promise.race([quiet, pause(withinMs, false, { ref: false })]);
  }

  /** Freezes the process in the middle of its work, or elsewhere if the process does not get there in time. */
  async freezeWhileHolding(withinMs: number): Promise<void> {
    const settle = new Promise<void>((resolve) => {
      this.#awaitingFreeze = resolve;
    });
    this.send({ order: "hold-for-freeze", withinMs });
    await Promise.race([settle, pause(withinMs, undefined, { ref: false })]);
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
      const exit = once(this.#child, "exit");
      this.#child.kill("SIGKILL");
      await exit;
    }
  }

  /** Stops the process: it closes its locks and exits, or is killed after a timeout. */
  async stop(): Promise<void> {
    this.#isExpectedToEnd = true;
    if (!this.isUp) {
      return;
    }
    const exit = once(this.#child, "exit");
    this.send({ order: "stop" });
    const tooLong = setTimeout(() => this.#child.kill("SIGKILL"), stopTimeoutMs);
    await exit;
    clearTimeout(tooLong);
  }
}
