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

  test.each(["bash", "zsh", "fish", "powershell"])("completion writes a script for %s", async (shell) => {
    const { code, out } = await cli.run(["completion", shell]);
    expect(code).toBe(0);
    expect(out).toMatch(/holdfast/);
  });

  test("completion completes commands, flags and their choices", async () => {
    const complete = async (...words: string[]): Promise<string[]> =>
      (await cli.run(["complete", "--", ...words])).out
        .split("\n")
        .map((line) => line.split("\t")[0] as string);
    expect(await complete("in")).toContain("inspect");
    expect(await complete("run", "--on")).toContain("--on-lost");
    expect(await complete("run", "--if-held", "")).toEqual(expect.arrayContaining(["wait", "skip", "fail"]));
    expect((await cli.run(["completion", "tcsh"])).code).toBe(64);
  });
});
