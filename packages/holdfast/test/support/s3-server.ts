import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { freePort } from "@holdfast/test-kit";

import { startServer } from "./server-process.ts";
import { describeWith } from "./servers.ts";

/** Where the set-up script installs the server. */
const modules = fileURLToPath(new URL("../../../../node_modules/.cache/moto", import.meta.url));
const env = { ...process.env, ...(existsSync(modules) ? { PYTHONPATH: modules } : {}) };

/** `describe` for tests that need an S3-compatible server: moto, which implements conditional writes. */
export const onS3: ReturnType<typeof describeWith> = describeWith(
  "moto, an S3-compatible server in Python,",
  spawnSync("python3", ["-c", "import importlib.util as u, sys; sys.exit(not u.find_spec('moto'))"], { env })
    .status === 0,
);

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
