import { hostname, userInfo } from "node:os";

import { waitUntil } from "@holdfast/test-kit";
import { expect, test } from "vitest";

import { commandLine } from "./support/cli.ts";
import { onRedis } from "./support/servers.ts";

onRedis("messages", () => {
  const cli = commandLine();
  const refused = async (...args: string[]): Promise<[number | null, string]> => {
    const { code, err } = await cli.run(args);
    return [code, err];
  };

  test("an invalid value is reported with its flag, in the flag's form", async () => {
    expect(await refused("run", "k", "--ttl", "10ms", "--", "true")).toEqual([
      64,
      "holdfast: expected --ttl to be from 100ms to 1d, got 10ms\n",
    ]);
    expect((await refused("run", "k", "--owner", "x".repeat(600), "--", "true"))[1]).toMatch(
      /expected --owner /,
    );
    expect((await refused("hold", "k", "--for", "1ms", "--reason", "x"))[1]).toMatch(
      /--for can be from 100ms to 1d with this engine, got 1ms/,
    );
  });

  test("another limit of a semaphore names --limit", async () => {
    const holder = cli.start(["run", "places", "--limit", "3", "--", "cat"], { isInteractive: true });
    holder.child.stdin?.write("in\n");
    await waitUntil(() => holder.out().includes("in"), "the command runs");
    const [code, err] = await refused("run", "places", "--limit", "5", "--", "true");
    expect(code).toBe(78);
    expect(err).toContain('The semaphore "places" has the limit 3, which all its holders need: --limit 3');
    holder.child.stdin?.end();
    await holder.ended;
  });

  test("an invalid URL is reported with its origin; a host and port get a hint", async () => {
    const [code, err] = await refused("ls", "--url", "127.0.0.1:6379");
    expect(code).toBe(64);
    expect(err).toMatch(
      /expected --url to begin with one of .*http:, https:.*write redis:\/\/127\.0\.0\.1:6379/,
    );
    const fromEnvironment = await cli.run(["ls"], { env: { HOLDFAST_URL: "secret" } });
    expect(fromEnvironment.code).toBe(78);
    expect(fromEnvironment.err).toMatch(/expected HOLDFAST_URL to begin/);
    expect(fromEnvironment.err).not.toContain("secret");
  });

  test("a held lock is reported with its holder, the wait, and the flag", async () => {
    await cli.run(["hold", "frozen", "--for", "1h", "--reason", "release week\u001b[2J", "--owner", "ada"]);
    const by = 'holdfast: "frozen" is held by ada (release week)';
    expect(await refused("run", "frozen", "--wait", "100ms", "--", "true")).toEqual([
      75,
      `${by}; the wait of 100ms has ended, --wait 5m or --wait forever waits longer; see holdfast inspect frozen\n`,
    ]);
    const atOnce = `${by}; --wait 5m waits for the lock; see holdfast inspect frozen\n`;
    expect(await refused("run", "-k", "free", "-k", "frozen", "--wait", "0", "--", "true")).toEqual([
      75,
      atOnce,
    ]);
    expect(await refused("acquire", "frozen", "--wait", "0")).toEqual([75, atOnce]);
    expect(await refused("hold", "frozen", "--for", "1h", "--reason", "x")).toEqual([75, atOnce]);
    expect(await refused("run", "frozen", "--if-held", "skip", "--", "true")).toEqual([
      0,
      `${by}; see holdfast inspect frozen\n`,
    ]);
  });

  test("without USER the owner is the account of the process", async () => {
    const env = { USER: undefined, LOGNAME: undefined, USERNAME: undefined };
    await cli.run(["hold", "mine", "--for", "1h", "--reason", "x"], { env });
    const state = JSON.parse((await cli.run(["inspect", "mine", "--json"])).out) as {
      holders: { owner: string }[];
    };
    expect(state.holders[0]?.owner).toBe(`${userInfo().username}@${hostname()}`);
    const other = await cli.run(["hold", "mine", "--release"], { env: { ...env, USER: "another" } });
    expect(other.code).toBe(77);
    expect((await cli.run(["hold", "mine", "--release"], { env })).code).toBe(0);
  });
});
