import { spawnSync } from "node:child_process";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";

import { sharedClockLead } from "../../src/runtime/clock.ts";

test("the lead of the shared clock has bounds that contain it at each reading", () => {
  const leads = Array.from({ length: 2_000 }, sharedClockLead);
  const leastMs = Math.max(...leads.map((lead) => lead.leastMs));
  const mostMs = Math.min(...leads.map((lead) => lead.mostMs));
  expect(leastMs).toBeLessThanOrEqual(mostMs);
  for (let readings = 0; readings < 2_000; readings += 1) {
    const before = performance.now();
    const shared = Number(process.hrtime.bigint()) / 1e6;
    const after = performance.now();
    expect(shared).toBeGreaterThanOrEqual(before + leastMs);
    expect(shared).toBeLessThanOrEqual(after + mostMs);
  }
});

test("a time that another thread read before is never later by the bounds of both threads", async () => {
  const clock = new URL("../../dist/runtime/clock.js", import.meta.url).href;
  const worker = new Worker(
    `const { parentPort } = require("node:worker_threads");
    import(${JSON.stringify(clock)}).then(({ sharedClockLead }) => {
      const { mostMs } = sharedClockLead();
      parentPort.on("message", () => parentPort.postMessage(performance.now() + mostMs));
      parentPort.postMessage("ready");
    });`,
    { eval: true },
  );
  const next = (): Promise<unknown> => new Promise((resolve) => worker.once("message", resolve));
  try {
    await next();
    const { leastMs } = sharedClockLead();
    for (let exchanges = 0; exchanges < 200; exchanges += 1) {
      const askedAt = performance.now() + leastMs;
      const reply = next();
      worker.postMessage("now");
      expect(await reply).toBeGreaterThanOrEqual(askedAt);
    }
  } finally {
    await worker.terminate();
  }
});

/** The event loop of a test worker is never idle, so the timers run in a process of their own, from the built package. */
const script = `
  import { pbkdf2 } from "node:crypto";
  import { createRequire } from "node:module";
  import { dirname, join } from "node:path";
  import { pathToFileURL } from "node:url";
  const folder = dirname(createRequire(import.meta.url).resolve("holdfast/package.json"));
  const { systemClock } = await import(pathToFileURL(join(folder, "dist/runtime/clock.js")));
  setTimeout(() => {
    systemClock.setTimer(() => console.log("at once"), 0);
    pbkdf2("password", "salt", 200_000, 32, "sha256", () => console.log("later"));
  }, 5);
`;

test("a timer without delay runs in a process that only waits for input, before that input", () => {
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
    cwd: import.meta.dirname,
    encoding: "utf8",
  });
  expect(`${stdout}${stderr}`).toBe("at once\nlater\n");
});
