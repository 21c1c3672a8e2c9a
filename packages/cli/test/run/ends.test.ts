import { writeFile } from "node:fs/promises";

import { waitUntil } from "@holdfast/test-kit";
import { expect, test } from "vitest";

import { commandLine } from "../support/cli.ts";
import { onRedis } from "../support/servers.ts";

onRedis("how run ends", () => {
  const cli = commandLine();

  test("the command's own code is the exit code, and the lock is released", async () => {
    const { code, err } = await cli.run(["run", "-k", "own-code", "--", "sh", "-c", "exit 7"]);
    expect({ code, err }).toEqual({ code: 7, err: "" });
    const client = cli.redis.client();
    expect(await client.exists("lock:own-code")).toBe(0);
  });

  test("a command that a signal ended gives 128 plus the signal's number", async () => {
    expect((await cli.run(["run", "-k", "k", "--", "sh", "-c", "kill -9 $$"])).code).toBe(137);
    expect((await cli.run(["run", "-k", "k", "--", "sh", "-c", "kill -TERM $$"])).code).toBe(143);
  });

  test("a missing program gives 127, a program that cannot be executed 126, and the lock is released", async () => {
    await writeFile(cli.file("plain"), "text", { mode: 0o600 });
    expect((await cli.run(["run", "-k", "k", "--", "holdfast-no-such-program"])).code).toBe(127);
    expect((await cli.run(["run", "-k", "k", "--", cli.file("plain")])).code).toBe(126);
    expect((await cli.run(["run", "-k", "k", "--wait", "0", "--", "true"])).code).toBe(0);
  });

  test("a held lock gives 75, the code of -E, or 0 with skip, and the command does not run", async () => {
    const holder = cli.start(["run", "-k", "held", "--", "sh", "-c", "echo in; exec sleep 60"]);
    await waitUntil(() => holder.out() !== "", "the holder is in");
    const touch = ["--", "touch", cli.file("must-not-be")];
    const ends = await Promise.all(
      [
        ["--wait", "0"],
        ["--wait", "2s"],
        ["--if-held", "fail"],
        ["--if-held", "skip"],
        ["--wait", "0", "-E", "9"],
      ].map((flags) => cli.run(["run", "-k", "held", ...flags, ...touch])),
    );
    expect(ends.map(({ code }) => code)).toEqual([75, 75, 75, 0, 9]);
    expect(ends[0]?.err).toMatch(/^holdfast: "held" is held by /);
    expect((await cli.spawn("ls", [cli.file("must-not-be")]).ended).code).not.toBe(0);
  });

  test("an unreachable engine gives 69, and the command never runs", async () => {
    const env = { HOLDFAST_URL: "redis://127.0.0.1:1?commandTimeoutMs=200" };
    const { code, out, err } = await cli.run(["run", "-k", "k", "--wait", "0", "--", "echo", "ran"], { env });
    expect({ code, out }).toEqual({ code: 69, out: "" });
    expect(err).toMatch(/ECONNREFUSED 127\.0\.0\.1:1/);
  });

  test("an engine that refuses the credentials gives 77, and no password is printed", async () => {
    const client = cli.redis.client();
    await client.call("ACL", "SETUSER", "weak", "on", ">pass-word", "~nothing", "+@all");
    for (const user of ["weak:pass-word", "weak:wrong-pass-word"]) {
      const env = { HOLDFAST_URL: `redis://${user}@127.0.0.1:${cli.redis.port}` };
      const { code, err } = await cli.run(["run", "-k", "k", "--wait", "0", "--", "true"], { env });
      expect(code).toBe(77);
      expect(err).not.toMatch(/pass-word/);
    }
  });

  test("mistakes in the flags give 64, and name them", async () => {
    const usage = async (...args: string[]): Promise<string> => {
      const { code, out, err } = await cli.run(args);
      expect({ code, out }).toEqual({ code: 64, out: "" });
      return err;
    };
    expect(await usage("run", "-k", "k")).toMatch(/no command is given/);
    expect(await usage("run", "--", "true")).toMatch(/run KEY -- /);
    expect(await usage("run", "-k", "k", "--ttl", "30", "--", "true")).toMatch(/--ttl <time>.*30s/s);
    expect(await usage("run", "-k", "k", "--ttl", "4s", "--grace", "2s", "--", "true")).toMatch(/--grace/);
    expect(await usage("run", "-k", "k", "--ttl", "1ms", "--", "true")).toMatch(
      /expected --ttl to be from 100ms/,
    );
    expect(await usage("run", "-k", "k", "-k", "l", "--shared", "--", "true")).toMatch(/one --key/);
    expect(await usage("run", "-k", "k", "--url", "http+nothing://x", "--", "true")).toMatch(/url/);
    expect(await usage("sprint")).toMatch(/sprint/);
  });

  test("no engine, or an engine inside the process, gives 78", async () => {
    const without = await cli.run(["run", "-k", "k", "--", "true"], { env: { HOLDFAST_URL: undefined } });
    expect(without.code).toBe(78);
    expect(without.err).toMatch(/HOLDFAST_URL/);
    const alone = await cli.run(["run", "-k", "k", "--", "true"], { env: { HOLDFAST_URL: "memory:" } });
    expect(alone.code).toBe(78);
  });

  test("a run inside a run of the same key fails at once, also with another one between", async () => {
    const inner = (key: string, ...words: string[]): string[] => [
      process.execPath,
      cli.program,
      "run",
      "-k",
      key,
      "--",
      ...words,
    ];
    const { code, err } = await cli.run(["run", "-k", "a", "--", ...inner("b", ...inner("a", "true"))]);
    expect(code).toBe(64);
    expect(err).toMatch(/self-deadlock/);
  });

  test.each([
    ["run", "run -k stolen-run --"],
    ["once, which would keep it,", "once stolen-once --for 1h --"],
  ])("%s gives 79 if its lock was lost before the command ended", async (_, words) => {
    const [name = ""] = /stolen-\w+/.exec(words) ?? [];
    const script = `echo in; while [ ! -e ${name} ]; do sleep 0.02; done`;
    const held = cli.start([...words.split(" "), "sh", "-c", script]);
    await waitUntil(() => held.out() !== "", "it is in");
    await cli.redis.client().set(`lock:${name}`, "somebody else");
    await writeFile(cli.file(name), "");
    const { code, err } = await held.ended;
    expect(code).toBe(79);
    expect(err).toMatch(/lost/);
  });
});
