import { waitUntil } from "@holdfast/test-kit";
import { expect, test } from "vitest";

import { commandLine } from "../support/cli.ts";
import { onRedis } from "../support/servers.ts";

onRedis("run", () => {
  const cli = commandLine();

  test("forwards stdin, stdout and stderr to the command", async () => {
    const text = `${"line\n".repeat(20_000)}end`;
    const { out, err, code } = await cli.run(["run", "-k", "k", "--", "sh", "-c", "cat; echo aside >&2"], {
      input: text,
    });
    expect({ code, err, same: out === text }).toEqual({ code: 0, err: "aside\n", same: true });
  });

  test("forwards arguments unchanged, and a line for the shell by -c", async () => {
    const words = ["--key", "-k", "a b", "$HOME", "*", ""];
    const { out } = await cli.run(["run", "-k", "k", "--", "printf", "[%s]", ...words]);
    expect(out).toBe(words.map((word) => `[${word}]`).join(""));
    expect((await cli.run(["run", "-k", "k", "-c", "echo $((6*7)) | tr 4 5"])).out).toBe("52\n");
  });

  test("keeps a terminal, with its colours and its size", async () => {
    const command = `${process.execPath} ${cli.program} run -k tty -- sh -c '[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && stty size && echo all'`;
    const { out } = await cli.spawn("script", ["-qec", `stty rows 33 cols 77; ${command}`, "/dev/null"], {
      env: { TERM: "xterm-256color" },
    }).ended;
    expect(out).toMatch(/33 77\s+all/);
  });

  test("sets the key, the fencing token and the end of the validity", async () => {
    const before = Date.now();
    const script =
      'echo "$HOLDFAST_LOCK_HELD|$HOLDFAST_LOCK_KEY|$HOLDFAST_FENCING_TOKEN|$HOLDFAST_LEASE_VALID_UNTIL|$TRACEPARENT"';
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const args = ["run", "-k", "env", "--ttl", "20s", "--", "sh", "-c", script];
    const [first, second] = [
      await cli.run(args, { env: { TRACEPARENT: traceparent } }),
      await cli.run(args),
    ].map(({ out }) => out.trim().split("|")) as [string[], string[]];
    expect(first.slice(0, 2)).toEqual(["1", "env"]);
    expect(first[4]).toBe(traceparent);
    expect(BigInt(second[2] ?? "0")).toBeGreaterThan(BigInt(first[2] ?? "0"));
    expect(Number(first[3])).toBeGreaterThan(before);
    expect(Number(first[3])).toBeLessThan(Date.now() + 20_000);
  });

  test("locks several keys as one, and runs readers together", async () => {
    const both = cli.start([
      "run",
      "-k",
      "one",
      "-k",
      "two",
      "--",
      "sh",
      "-c",
      'echo "$HOLDFAST_FENCING_TOKENS"; exec sleep 60',
    ]);
    await waitUntil(() => both.out() !== "", "it has both");
    expect(Object.keys(JSON.parse(both.out()) as object)).toEqual(["one", "two"]);
    expect((await cli.run(["run", "-k", "two", "--wait", "0", "--", "true"])).code).toBe(75);

    const reader = cli.start(["run", "-k", "rw", "--shared", "--", "sh", "-c", "echo in; exec sleep 60"]);
    await waitUntil(() => reader.out() !== "", "a reader is in");
    expect((await cli.run(["run", "-k", "rw", "--shared", "--wait", "0", "--", "true"])).code).toBe(0);
    expect((await cli.run(["run", "-k", "rw", "--wait", "0", "--", "true"])).code).toBe(78);

    const permit = cli.start([
      "run",
      "-k",
      "two-of",
      "--limit",
      "2",
      "--",
      "sh",
      "-c",
      "echo in; exec sleep 60",
    ]);
    await waitUntil(() => permit.out() !== "", "one is in");
    const second = ["run", "-k", "two-of", "--limit", "2", "--wait", "0", "--"];
    expect(
      (await cli.run([...second, process.execPath, cli.program, "run", "-k", "other", "--", "true"])).code,
    ).toBe(0);
  });

  test.each(["HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "WINCH", "CONT"])(
    "SIG%s reaches the command",
    async (name) => {
      const script = `trap 'echo got-${name}; exit 5' ${name}; echo ready; while :; do sleep 0.02; done`;
      const running = cli.start(["run", "-k", `signal-${name}`, "--", "sh", "-c", script]);
      await waitUntil(() => running.out() !== "", "it is ready");
      running.kill(`SIG${name}` as NodeJS.Signals);
      const { code, out } = await running.ended;
      expect({ code, out }).toEqual({ code: 5, out: `ready\ngot-${name}\n` });
    },
  );

  test("starts in the order of the waiters when the lock is free", async () => {
    const holder = cli.start([
      "run",
      "-k",
      "order",
      "--",
      "sh",
      "-c",
      "echo in; while [ ! -e free ]; do sleep 0.02; done",
    ]);
    await waitUntil(() => holder.out() !== "", "the holder is in");
    const client = cli.redis.client();
    const waiters = [];
    for (const name of ["first", "second", "third"]) {
      waiters.push(
        cli.start(["run", "-k", "order", "--wait", "forever", "--", "sh", "-c", `echo ${name} >> order`]),
      );
      await waitUntil(
        async () => (await client.zcard("holdfast:queue:{lock:order}")) === waiters.length,
        `${name} waits`,
      );
    }
    await cli.spawn("touch", [cli.file("free")]).ended;
    expect(await Promise.all(waiters.map(async ({ ended }) => (await ended).code))).toEqual([0, 0, 0]);
    expect(await cli.read("order")).toBe("first\nsecond\nthird\n");
  });
});
