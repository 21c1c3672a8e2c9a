import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

export const kazooProgram: string = fileURLToPath(new URL("../../kazoo/worker.py", import.meta.url));

/** Where the set-up script installs kazoo. An installation of the system counts too. */
const modules = fileURLToPath(new URL("../../../node_modules/.cache/kazoo", import.meta.url));

export const pythonEnv: NodeJS.ProcessEnv = { ...process.env, PYTHONPATH: modules };

let isInstalled: boolean | undefined;

export function hasKazoo(): boolean {
  isInstalled ??= spawnSync("python3", ["-c", "import kazoo"], { env: pythonEnv }).status === 0;
  return isInstalled;
}
