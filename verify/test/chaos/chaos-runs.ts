import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { afterAll, beforeAll, expect } from "vitest";

import type { Verdict } from "../../chaos/judge/judge.ts";
import type { EngineName } from "../../chaos/plan/plan.ts";

const program = fileURLToPath(new URL("../../dist/chaos/main.js", import.meta.url));

/** Runs `npm run verify:chaos` as a user does, with a folder for the records of this file. */
export class ChaosRuns {
  folder = "";

  constructor() {
    beforeAll(async () => {
      this.folder = await mkdtemp(join(tmpdir(), "holdfast-chaos-test-"));
    });
    afterAll(async () => {
      await rm(this.folder, { recursive: true, force: true });
    });
  }

  async verdict(name: EngineName, output: string): Promise<Verdict> {
    const path = join(this.folder, name, "verdict.json");
    expect(existsSync(path), output).toBe(true);
    return JSON.parse(await readFile(path, "utf8")) as Verdict;
  }

  async run(...args: readonly string[]): Promise<{ code: number | null; output: string }> {
    if (!existsSync(program)) {
      throw new Error("verify is not built: run `npm run build`");
    }
    const child = spawn(process.execPath, [program, ...args, "--folder", this.folder], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    }
    const endWithUs = (): void => void child.kill("SIGTERM");
    process.once("exit", endWithUs);
    const [code] = (await once(child, "close")) as [number | null];
    process.off("exit", endWithUs);
    return { code, output };
  }
}
