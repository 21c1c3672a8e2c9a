import { spawnSync } from "node:child_process";
import { closeSync, openSync, writeSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { describe } from "vitest";

import { atEnd } from "./quorum-stage.ts";

const compiler = "cc";
const source = fileURLToPath(new URL("clock-shim.c", import.meta.url));
const isMissing = process.platform !== "linux" || spawnSync(compiler, ["--version"]).error !== undefined;

/**
 * Whether servers can be given a clock of their own: that takes Linux and a C compiler. Where they are missing it is said loudly;
 * in CI it is an error.
 */
export const describeWithClocks: ReturnType<typeof describe.skipIf> = describe.skipIf(refuseOrWarn());

/** The wall clock of one server, in a file that the server reads. */
export class ServerClock {
  /** For the server to be started with. */
  readonly env: Readonly<Record<string, string>>;
  readonly #file: number;

  constructor(library: string, path: string) {
    this.env = { LD_PRELOAD: library, HOLDFAST_CLOCK_FILE: path };
    this.#file = openSync(path, "w+");
    atEnd(() => {
      closeSync(this.#file);
    });
    this.set({});
  }

  /** From now on it is ahead by so much, and runs so much faster. */
  set({ aheadMs = 0, rate = 1 }: { aheadMs?: number; rate?: number }): void {
    const setting = Buffer.alloc(24);
    setting.writeBigInt64LE(BigInt(aheadMs) * 1_000n, 0);
    setting.writeDoubleLE(rate, 8);
    setting.writeBigInt64LE(BigInt(Date.now()) * 1_000n, 16);
    writeSync(this.#file, setting, 0, setting.length, 0);
  }
}

/** Compiles the shim, and makes so many clocks. They are gone after the test. */
export async function makeClocks(count: number): Promise<ServerClock[]> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-clock-"));
  atEnd(() => rm(folder, { recursive: true, force: true }));
  const library = join(folder, "clock-shim.so");
  const { status, stderr } = spawnSync(compiler, ["-shared", "-fPIC", "-O2", "-o", library, source], {
    encoding: "utf8",
  });
  if (status !== 0) {
    throw new Error(`${compiler} did not compile ${source}: ${stderr}`);
  }
  return Array.from(
    { length: count },
    (_, index) => new ServerClock(library, join(folder, `clock-${index}`)),
  );
}

function refuseOrWarn(): boolean {
  if (isMissing && process.env["CI"]) {
    throw new Error(`${compiler} is not installed; in CI these tests may not be skipped`);
  }
  if (isMissing) {
    console.warn(`\n!!! ${compiler} is not installed: the tests with altered clocks are SKIPPED !!!\n`);
  }
  return isMissing;
}
