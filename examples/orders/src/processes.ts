import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { performance } from "node:perf_hooks";

import type { Job, JobResult } from "./job.ts";
import type { Tally } from "./worker.ts";

/** The first message to a worker process. The second message, with any content, is the start. */
export interface Task {
  readonly ordersFile: string;
  readonly stockFile: string;
  readonly index: number;
  readonly workers: number;
  /** The URL is sent in a message, because arguments are visible to every user of the machine. `null`: without locks. */
  readonly redisUrl: string | null;
}

export type FromChild =
  | { readonly kind: "ready" }
  | { readonly kind: "progress"; readonly done: number }
  | { readonly kind: "finished"; readonly tally: Tally; readonly handovers: number };

const childProgram = new URL("./child.js", import.meta.url);
const exitTimeoutMs = 2_000;

/** Runs the job in one process for each worker. No process outlives the call. */
export async function runInProcesses(job: Job, redisUrl: string | null): Promise<JobResult> {
  const { ordersFile, stockFile, workers } = job;
  const children = Array.from({ length: workers }, () =>
    fork(childProgram, { stdio: ["ignore", 2, 2, "ipc"] }),
  );
  try {
    children.forEach((child, index) =>
      child.send({ ordersFile, stockFile, index, workers, redisUrl } satisfies Task),
    );
    return await runWorkers(children, job);
  } finally {
    await Promise.all(children.map(terminate));
  }
}

/** The time begins when every process is ready, so that orders/s does not include the start of Node. */
function runWorkers(children: ChildProcess[], { signal, onProgress }: Job): Promise<JobResult> {
  const done = children.map(() => 0);
  const finished: { tally: Tally; handovers: number }[] = [];
  let ready = 0;
  let started = 0;
  let onAbort = (): void => undefined;

  const result = new Promise<JobResult>((resolve, reject) => {
    const begin = (): void => {
      started = performance.now();
      for (const child of children) child.send("start");
    };
    const finish = (): void => {
      const seconds = (performance.now() - started) / 1_000;
      const handovers = finished.reduce((sum, child) => sum + child.handovers, 0);
      resolve({ tallies: finished.map(({ tally }) => tally), handovers, seconds });
    };
    const onMessage = (message: FromChild, index: number): void => {
      switch (message.kind) {
        case "ready":
          if (++ready === children.length) begin();
          break;
        case "progress":
          done[index] = message.done;
          onProgress(done.reduce((sum, count) => sum + count, 0));
          break;
        case "finished":
          if (finished.push(message) === children.length) finish();
          break;
      }
    };
    for (const [index, child] of children.entries()) {
      child.on("message", (message) => onMessage(message as FromChild, index));
      child.on("error", reject);
      child.once("exit", (code, cause) =>
        reject(new Error(`Worker ${index} ended early, by ${cause ?? `exit code ${code}`}`)),
      );
    }
    onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort);
  });
  return result.finally(() => signal.removeEventListener("abort", onAbort));
}

/** A child that is disconnected closes its locks and ends. If it does not end in time, it is killed. */
async function terminate(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const exited = once(child, "exit");
  const timeout = setTimeout(() => child.kill("SIGKILL"), exitTimeoutMs);
  if (child.connected) child.disconnect();
  await exited;
  clearTimeout(timeout);
}
