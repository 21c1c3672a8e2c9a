import { expect, test } from "vitest";

import { commandLine } from "./support/cli.ts";
import { onRedis } from "./support/servers.ts";

onRedis("the other commands", () => {
  const cli = commandLine();

  test("bench measures an engine, and that no lock has two holders", async () => {
    const args = ["bench", "--workers", "4", "--keys", "1", "--for", "300ms"];
    const { code, out } = await cli.run([...args, "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ version: 1, failures: 0, overlaps: 0 });
    expect((JSON.parse(out) as { acquired: number }).acquired).toBeGreaterThan(0);
    expect((await cli.run(args)).out).toMatch(/two holders +never/);
    expect(await cli.redis.client().keys("lock:*")).toEqual([]);
  });
});
