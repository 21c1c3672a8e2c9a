import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { createLocks, type Locks } from "holdfast";
import { redis } from "holdfast/redis";
import { expect, test } from "vitest";
import { endProcess, ServerClocks, waitUntil } from "@holdfast/test-kit";

import { direct, newKey, onSharedRedis, shared } from "../../support/fault-fixture.ts";

const program = fileURLToPath(new URL("../../support/once-scheduler.mjs", import.meta.url));

/** A process with a wall clock of its own. */
class Scheduler implements AsyncDisposable {
  readonly #child;
  readonly #lines;

  constructor(key: string, env: Readonly<Record<string, string>>) {
    this.#child = spawn(process.execPath, [program, String(shared.port), key], {
      env: { ...process.env, NODE_OPTIONS: "", ...env },
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#lines = createInterface({ input: this.#child.stdout });
  }

  async line(): Promise<string> {
    return ((await once(this.#lines, "line")) as [string])[0];
  }

  fire(name: string): Promise<string> {
    const line = this.line();
    this.#child.stdin.write(`${name}\n`);
    return line;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await endProcess(this.#child);
  }
}

onSharedRedis("`once` on a real server", () => {
  test("three processes with clocks 300 ms apart run a job of 20 ms exactly once for each fire", async () => {
    const key = newKey();
    await using clocks = await ServerClocks.make(3);
    const schedulers: Scheduler[] = [];
    const locks: Locks = createLocks(redis(direct));
    try {
      for (const [index, clock] of clocks.clocks.entries()) {
        const aheadMs = (2 - index) * 300;
        clock.set({ aheadMs });
        const startedAt = Date.now();
        const scheduler = new Scheduler(key, clock.env);
        schedulers.push(scheduler);
        const wall = Number((await scheduler.line()).split(" ")[1]);
        expect([wall >= startedAt + aheadMs, wall <= Date.now() + aheadMs]).toEqual([true, true]);
      }
      for (const fire of ["one", "two"]) {
        // A process whose clock is ahead fires earlier.
        const results = schedulers.map((scheduler, index) =>
          pause(index * 300).then(() => scheduler.fire(fire)),
        );
        expect((await Promise.all(results)).sort()).toEqual([
          `ran ${fire}`,
          `skipped ${fire}`,
          `skipped ${fire}`,
        ]);
        await waitUntil(async () => (await locks.inspect(key)).holders.length === 0, "the end of the period");
      }
    } finally {
      await Promise.all(schedulers.map((scheduler) => scheduler[Symbol.asyncDispose]()));
      await locks.close();
    }
  });
});
