import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";

import { endProcess, hasEnded } from "@holdfast/test-kit";

import { startChild } from "../../chaos/run/children.ts";

const startWithinMs = 60_000;
const quitWithinMs = 5_000;

/** How to start a worker: a program with its arguments, and additional variables. */
export interface WorkerCommand {
  readonly program: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** One worker, with the line protocol of the README. */
export class WorkerProcess {
  readonly #child: ChildProcess;
  readonly #waiting: Waiter[] = [];
  #errors = "";

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#errors = (this.#errors + text).slice(-2_000);
    });
    child.stdin?.on("error", () => undefined); // a killed worker
    child.once("error", (error) => this.#fail(error.message));
    child.once("exit", () => this.#fail("the worker ended"));
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on("line", (line) => {
      this.#waiting.shift()?.resolve(line);
    });
  }

  static async start({ program, args, env = {} }: WorkerCommand): Promise<WorkerProcess> {
    const child = startChild(() => spawn(program, [...args], { env: { ...process.env, ...env } }));
    const worker = new WorkerProcess(child);
    const line = await worker.#nextLine(startWithinMs);
    if (line !== "ready") {
      throw new Error(`Expected the worker to write "ready", got ${JSON.stringify(line)}`);
    }
    return worker;
  }

  /** Sends a request, and returns the words of its reply. Rejects if the worker ends. */
  async request(line: string): Promise<string[]> {
    this.#child.stdin?.write(`${line}\n`);
    return (await this.#nextLine()).split(" ");
  }

  #nextLine(withinMs?: number): Promise<string> {
    return new Promise((resolve, reject) => {
      const timer =
        withinMs === undefined
          ? undefined
          : setTimeout(() => reject(this.#error(`no line in ${withinMs} ms`)), withinMs);
      const settle = <T>(then: (value: T) => void) => {
        return (value: T): void => {
          clearTimeout(timer);
          then(value);
        };
      };
      const waiter: Waiter = { resolve: settle(resolve), reject: settle(reject) };
      if (hasEnded(this.#child)) {
        waiter.reject(this.#error("the worker ended"));
      } else {
        this.#waiting.push(waiter);
      }
    });
  }

  #fail(reason: string): void {
    for (const { reject } of this.#waiting.splice(0)) {
      reject(this.#error(reason));
    }
  }

  #error(reason: string): Error {
    return new Error(`${reason}${this.#errors === "" ? "" : `; its last messages: ${this.#errors.trim()}`}`);
  }

  freeze(): void {
    this.#child.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child.kill("SIGCONT");
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  /** Asks the worker to end, and ends it after a while. */
  async quit(): Promise<void> {
    if (hasEnded(this.#child)) {
      return;
    }
    this.#child.stdin?.end("quit\n");
    const timer = setTimeout(() => void endProcess(this.#child), quitWithinMs);
    await new Promise<void>((resolve) => {
      this.#child.once("exit", () => resolve());
      this.thaw();
    });
    clearTimeout(timer);
  }
}

interface Waiter {
  resolve(line: string): void;
  reject(error: Error): void;
}
