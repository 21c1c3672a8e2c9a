import { fork, type ChildProcess } from "node:child_process";
import { on } from "node:events";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("postgres-worker.mjs", import.meta.url));

/** A process that locks, with its messages in order. */
export interface PostgresWorker {
  readonly child: ChildProcess;
  next(): Promise<unknown>;
}

/** Starts `postgres-worker.mjs`. @param option "listen" or "advisory": an option of its driver */
export function startPostgresWorker(url: string, option?: "listen" | "advisory"): PostgresWorker {
  const args = option === undefined ? [url] : [url, option];
  const child = fork(program, args, { stdio: ["ignore", 2, 2, "ipc"], execArgv: [] });
  const messages = on(child, "message");
  return { child, next: async () => ((await messages.next()).value as [unknown])[0] };
}
