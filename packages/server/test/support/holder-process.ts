import { spawn, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";

import { waitUntil } from "@holdfast/test-kit";
import { expect } from "vitest";

const program = fileURLToPath(new URL("lock-holder.mjs", import.meta.url));

/** Starts a process that holds keys, without a chance to release them when it is killed. The caller kills the process. */
export async function holdInProcess(
  url: string,
  { owner, ttlMs, keys }: { owner: string; ttlMs: number; keys: readonly string[] },
): Promise<ChildProcess> {
  const child = spawn(process.execPath, [program, url, owner, String(ttlMs), ...keys], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let isReady = false;
  child.stdout.once("data", () => (isReady = true));
  await waitUntil(() => isReady || child.exitCode !== null, "it holds the locks");
  expect(child.exitCode).toBeNull();
  return child;
}
