import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { freePort } from "../redis-server.ts";
import { startServer } from "./server-process.ts";

/** Where the set-up script installs the server. */
const modules = fileURLToPath(new URL("../../../node_modules/.cache/moto", import.meta.url));
const env = { ...process.env, ...(existsSync(modules) ? { PYTHONPATH: modules } : {}) };

/** Whether moto is installed, an S3-compatible server in Python that implements conditional writes. */
export function hasS3(): boolean {
  const code = "import importlib.util as u, sys; sys.exit(not u.find_spec('moto'))";
  return spawnSync("python3", ["-c", code], { env }).status === 0;
}

export interface S3Server {
  /** The URL of the server's one bucket. */
  readonly bucket: string;
  stop(): Promise<void>;
}

/** Starts a server on a free port of 127.0.0.1. It keeps its objects in memory. */
export async function startS3(): Promise<S3Server> {
  const port = await freePort();
  const bucket = `http://127.0.0.1:${port}/holdfast`;
  const createBucket = async (): Promise<void> => {
    const { ok, status } = await fetch(bucket, { method: "PUT" });
    if (!ok) {
      throw new Error(`the bucket was not created: ${status}`);
    }
  };
  const command = ["python3", "-m", "moto.server", "-H", "127.0.0.1", "-p", String(port)] as const;
  const server = await startServer(command, createBucket, { env });
  return { bucket, stop: () => server.stop() };
}
