import { waitUntil } from "@holdfast/test-kit";
import { createLocks } from "holdfast";
import { redis } from "holdfast/redis";
import { beforeAll, expect, test } from "vitest";

import { commandLine } from "../support/cli.ts";
import { onRedis } from "../support/servers.ts";

interface PrintedState {
  readonly version: number;
  readonly key: string;
  readonly type: string;
  readonly holders: readonly {
    readonly owner: string;
    readonly reason?: string;
    readonly fencingToken: string;
  }[];
  readonly waiters: readonly { readonly owner: string; readonly position: number }[];
}

onRedis("looking at locks", () => {
  const cli = commandLine();
  const read = (line: string): PrintedState => JSON.parse(line) as PrintedState;

  beforeAll(async () => {
    await cli.run(["acquire", "-k", "look:b", "--ttl", "1h", "--owner", "bob", "--reason", "backup"]);
    await cli.run(["acquire", "-k", "look:a", "--ttl", "2h", "--owner", "ada"]);
    await cli.run(["acquire", "-k", "other", "--ttl", "3h", "--owner", "eve\u001b[2J"]);
    await cli.redis.client().set("lock:look:foreign", "not ours");
  });

  test("ls lists held locks, by prefix and owner, and sorted", async () => {
    const keys = async (...flags: string[]): Promise<string[]> => {
      const { code, out } = await cli.run(["ls", ...flags, "--json"]);
      expect(code).toBe(0);
      const { version, locks } = JSON.parse(out) as { version: number; locks: PrintedState[] };
      expect(version).toBe(1);
      return locks.map(({ key }) => key);
    };
    expect(await keys()).toEqual(["look:a", "look:b", "look:foreign", "other"]);
    expect(await keys("look:")).toEqual(["look:a", "look:b", "look:foreign"]);
    expect(await keys("--owner", "bob")).toEqual(["look:b"]);
    expect(await keys("--sort", "left")).toEqual(["look:b", "look:a", "other", "look:foreign"]);
    expect(await keys("--stale")).toEqual(["look:foreign"]);
    expect(await keys("--waiting")).toEqual([]);
    expect(await keys("nothing")).toEqual([]);
  });

  test("ls prints a table for people, without control characters of other programs", async () => {
    const { out } = await cli.run(["ls"]);
    expect(out).toMatch(/^KEY +KIND +HOLDER +FENCE +HELD +LEFT +WAITING +OLDEST WAIT +REASON\n/);
    expect(out).toMatch(/^look:b +mutex +bob +\d+ +\S+ +59m \d+s +0 +- +backup$/m);
    expect(out).not.toContain("\u001b");
  });

  test("owners and inspect show what another process reports of itself", async () => {
    const locks = createLocks(redis(cli.redis.client()), { owner: "clerk@pod:7\u001b[2J" });
    const lease = await locks.acquire("ledger", { ttlMs: 60_000 });
    const waiting = locks.acquire("ledger", { waitMs: 60_000 }).catch(() => undefined);
    let out = "";
    await waitUntil(
      async () => ({ out } = await cli.run(["owners", "--key", "ledger"])).out.includes("clerk"),
      "the process has registered",
    );
    expect(out).toMatch(
      /^PROCESS +HOST +PID +HOLDS +WAITS +OLDEST WAIT +LAG\nclerk@pod:7 +\S+ +\d+ +1 +1 +\S+ +\S+/,
    );
    const { out: json } = await cli.run(["owners", "--json"]);
    expect(JSON.parse(json)).toMatchObject({
      version: 1,
      scope: "engine",
      processes: [
        { answered: true, holds: [{ key: "ledger", fencingToken: lease.fencingToken.toString() }] },
      ],
    });
    const inspected = await cli.run(["inspect", "ledger"]);
    expect(inspected.out).toMatch(
      /clerk@pod:7 holds it: renewed \S+ ago, safe for \d+s, 1 waiting in its memory/,
    );
    expect(inspected.out).toMatch(/clerk@pod:7: 1 waiting, the oldest for \S+/);
    expect(inspected.out).not.toContain("\u001b");
    await locks.close();
    await waiting;
  });

  test("ls, inspect and top count the callers in the memory of the holder's process", async () => {
    const locks = createLocks(redis(cli.redis.client()), { owner: "busy" });
    const lease = await locks.acquire("crowded", { ttlMs: 2_000 });
    const waiting = [1, 2, 3].map(() => locks.acquire("crowded", { waitMs: 60_000 }));
    await waitUntil(
      async () => (await cli.run(["ls", "--waiting"])).out.includes("crowded"),
      "it has renewed",
    );
    expect((await cli.run(["ls", "--waiting"])).out).toMatch(
      /^crowded +mutex +busy +\d+ +\S+s +\d+m?s +3 +\d+m?s *$/m,
    );
    expect((await cli.run(["top", "--once"])).out).toMatch(/3 waiting/);
    const { out } = await cli.run(["inspect", "crowded"]);
    expect(out).toMatch(
      /3 waiting, the oldest for \S+\n {2}3 in the memory of the holder's process, the oldest for \S+, by its/,
    );
    await lease.release();
    for (const granted of waiting) {
      await (await granted).release();
    }
    await locks.close();
  });

  test("inspect shows the holder, and the waiters in order", async () => {
    const waiters = [];
    const client = cli.redis.client();
    for (const owner of ["first", "second"]) {
      waiters.push(cli.start(["run", "-k", "look:a", "--owner", owner, "--wait", "forever", "--", "true"]));
      await waitUntil(
        async () => (await client.zcard("holdfast:queue:{lock:look:a}")) === waiters.length,
        "it waits",
      );
    }
    const state = read((await cli.run(["inspect", "look:a", "--json"])).out);
    expect(state).toMatchObject({ version: 1, key: "look:a", holders: [{ owner: "ada" }] });
    expect(state.waiters.map(({ owner, position }) => [owner, position])).toEqual([
      ["first", 0],
      ["second", 1],
    ]);
    const { out } = await cli.run(["inspect", "look:a"]);
    expect(out).toMatch(/"look:a" is a mutex/);
    expect(out).toMatch(/2 waiting, the oldest for \S+\n {2}1\. +first +for \S+\n {2}2\. +second +for \S+/);
    expect((await cli.run(["ls", "look:a"])).out).toMatch(/^look:a .* 2 +\d+m?s( \d+s)? *$/m);
    expect((await cli.run(["inspect", "free"])).out).toMatch(/"free" is free/);
  });

  test("wait ends with 0 when the lock is free, and with 75 after its time", async () => {
    expect((await cli.run(["wait", "free"])).code).toBe(0);
    expect((await cli.run(["wait", "look:b", "--wait", "100ms"])).code).toBe(75);
    expect((await cli.run(["wait", "look:b", "--wait", "0", "-E", "4"])).code).toBe(4);
    await cli.run(["acquire", "-k", "soon"]);
    const waiting = cli.start(["wait", "soon", "-v"]);
    await cli.redis.client().del("lock:soon");
    expect((await waiting.ended).code).toBe(0);
  });

  test("watch prints the held locks, and then every change, until Ctrl-C", async () => {
    const watching = cli.start(["watch", "seen:", "--json"]);
    const lines = (): PrintedState[] => watching.out().split("\n").filter(Boolean).map(read);
    await cli.run(["acquire", "-k", "seen:1", "--owner", "me"]);
    await waitUntil(() => lines().some(({ key }) => key === "seen:1"), "it is told");
    await cli.redis.client().del("lock:seen:1");
    await waitUntil(() => lines().some(({ type }) => type === "gone"), "its end is reported");
    watching.kill("SIGINT");
    expect((await watching.ended).code).toBe(130);
    expect(lines().every(({ version, key }) => version === 1 && key === "seen:1")).toBe(true);
  });

  test("a closed reader of stdout ends watch without an error", async () => {
    const reading = cli.spawn("sh", ["-c", `${process.execPath} ${cli.program} watch gone: | head -n 1`]);
    let hasEnded = false;
    const ended = reading.ended.finally(() => {
      hasEnded = true;
    });
    const client = cli.redis.client();
    await waitUntil(async () => {
      await client.set(`lock:gone:${performance.now()}`, "x", "PX", 10_000);
      return hasEnded;
    }, "it ends");
    expect((await ended).err).toBe("");
  });

  test("every command prints its help on stdout, and a mistake on stderr", async () => {
    const { out, code } = await cli.run(["--help"]);
    expect(code).toBe(0);
    const commands = [...out.matchAll(/^ {2}([a-z]+)(?: \[| <)/gm)].map(([, name]) => name as string);
    expect(commands).toContain("run");
    for (const command of commands.filter((name) => name !== "help")) {
      const help = await cli.run([command, "--help"]);
      expect({ code: help.code, err: help.err }).toEqual({ code: 0, err: "" });
      expect(help.out).toContain(`Usage: holdfast ${command}`);
      expect(await cli.run([command, "--no-such-flag"])).toMatchObject({ code: 64, out: "" });
    }
  });
});
