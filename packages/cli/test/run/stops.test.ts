import { startProxy, waitUntil } from "@holdfast/test-kit";
import { expect, test } from "vitest";

import { commandLine, isRunning, type RunningProcess } from "../support/cli.ts";
import { onRedis } from "../support/servers.ts";

/** Records the time, to the nanosecond, every few milliseconds, and ignores TERM. */
const stubborn =
  'trap "echo TERM >> heard" TERM; echo $$; while :; do date +%s%N >> beats; sleep 0.005; done';
const times = ["--ttl", "2s", "--grace", "600ms"];

onRedis("how run ends its command for the sake of the lock", () => {
  const cli = commandLine();

  /** Starts a command that ignores TERM, and waits until it runs. */
  async function stubbornly(
    key: string,
    flags: readonly string[] = [],
    url = cli.url,
  ): Promise<RunningProcess> {
    await cli.spawn("rm", ["-f", "beats", "heard"]).ended;
    const running = cli.start(["run", "-k", key, ...times, ...flags, "--", "sh", "-c", stubborn], {
      env: { HOLDFAST_URL: url },
    });
    await waitUntil(async () => (await cli.read("beats")) !== "", "it runs");
    return running;
  }

  async function lastBeat(): Promise<bigint> {
    return BigInt((await cli.read("beats")).trim().split("\n").at(-1) ?? "0");
  }

  test("a command that ignores TERM is dead before another can start", async () => {
    const proxy = await startProxy(cli.redis.port);
    try {
      const first = await stubbornly("exclusive", [], `redis://127.0.0.1:${proxy.port}`);
      const second = cli.start(["run", "-k", "exclusive", "--wait", "forever", "--", "date", "+%s%N"]);
      const client = cli.redis.client();
      await waitUntil(
        async () => (await client.zcard("holdfast:queue:{lock:exclusive}")) === 1,
        "the second waits",
      );
      proxy.pause("requests");
      const [one, two] = await Promise.all([first.ended, second.ended]);
      expect([one.code, two.code]).toEqual([79, 0]);
      expect(await lastBeat()).toBeLessThan(BigInt(two.out.trim()));
      expect(await cli.read("heard")).toBe("TERM\n");
      expect(one.err).toMatch(
        /could not be renewed.*SIGTERM.*\n.*is lost: engine-unreachable \(.*\); SIGKILL/s,
      );
    } finally {
      await proxy.stop();
    }
  });

  test("a command that handles TERM has the grace to end, and the code is still 79", async () => {
    const script = 'trap "echo cleaned; exit 0" TERM; echo in; while :; do sleep 0.02; done';
    const running = cli.start(["run", "-k", "listens", ...times, "--", "sh", "-c", script]);
    await waitUntil(() => running.out() !== "", "it is in");
    cli.redis.freeze();
    try {
      const { code, out, err } = await running.ended;
      expect({ code, out }).toEqual({ code: 79, out: "in\ncleaned\n" });
      expect(err).not.toMatch(/SIGKILL/);
    } finally {
      cli.redis.thaw();
    }
  });

  test("a server that is frozen for less than the deadline has no effect", async () => {
    const script = 'trap "echo TERM" TERM; echo in; while [ ! -e calm ]; do sleep 0.02; done; echo out';
    const running = cli.start([
      "run",
      "-k",
      "calm",
      "--ttl",
      "6s",
      "--grace",
      "500ms",
      "--",
      "sh",
      "-c",
      script,
    ]);
    await waitUntil(() => running.out() !== "", "it is in");
    const client = cli.redis.client();
    const ttl = (): Promise<number> => client.pttl("lock:calm");
    await waitUntil(async () => (await ttl()) < 4_300, "a renewal is near");
    cli.redis.freeze();
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    cli.redis.thaw();
    await waitUntil(async () => (await ttl()) > 4_500, "it was renewed");
    await cli.spawn("touch", ["calm"]).ended;
    expect(await running.ended).toMatchObject({ code: 0, out: "in\nout\n", err: "" });
  });

  test("grandchildren are ended with it", async () => {
    const script = 'trap "" TERM; (trap "" TERM; while :; do sleep 0.05; done) & echo $!; sleep 60';
    const running = cli.start(["run", "-k", "grand", ...times, "--", "sh", "-c", script]);
    await waitUntil(() => running.out() !== "", "both run");
    const grandchild = Number(running.out());
    expect(await isRunning(grandchild)).toBe(true);
    cli.redis.freeze();
    try {
      expect((await running.ended).code).toBe(79);
      await waitUntil(async () => !(await isRunning(grandchild)), "the grandchild has ended");
    } finally {
      cli.redis.thaw();
    }
  });

  test("remaining processes of a command are ended before the release, and the command's own code is returned", async () => {
    const script = '(trap "" TERM; while :; do date +%s%N >> beats; sleep 0.005; done) & sleep 0.2; exit 3';
    const running = cli.start(["run", "-k", "left", ...times, "--", "sh", "-c", script]);
    const client = cli.redis.client();
    await waitUntil(async () => (await client.exists("lock:left")) === 1, "it holds");
    const second = cli.start(["run", "-k", "left", "--wait", "forever", "--", "date", "+%s%N"]);
    const { code, err } = await running.ended;
    expect(code).toBe(3);
    expect(err).toMatch(/left running processes/);
    expect(await lastBeat()).toBeLessThan(BigInt((await second.ended).out.trim()));
  });

  test("after a stop past its TTL, run kills the command at once, by KILL", async () => {
    const running = await stubbornly("stopped");
    const command = Number(running.out());
    running.kill("SIGSTOP");
    const client = cli.redis.client();
    await waitUntil(async () => (await client.exists("lock:stopped")) === 0, "the lock is free");
    expect(await isRunning(command)).toBe(true);
    running.kill("SIGCONT");
    const { code } = await running.ended;
    expect(code).toBe(79);
    expect(await isRunning(command)).toBe(false);
    expect(await cli.read("heard")).toBe("");
  });

  test("Ctrl-Z stops the command as well, and the command does not continue after a loss", async () => {
    const running = await stubbornly("suspended");
    const command = Number(running.out());
    running.kill("SIGTSTP");
    const client = cli.redis.client();
    await waitUntil(async () => (await client.exists("lock:suspended")) === 0, "the lock is free");
    const still = await lastBeat();
    running.kill("SIGCONT");
    expect((await running.ended).code).toBe(79);
    expect(await isRunning(command)).toBe(false);
    expect(await lastBeat()).toBe(still);
  });

  test("a broken lock ends its command at once, by KILL", async () => {
    const running = await stubbornly("broken");
    const client = cli.redis.client();
    await client.set("lock:broken", "somebody else");
    expect(await running.ended).toMatchObject({ code: 79 });
    expect(await cli.read("heard")).toBe("");
  });

  test("at --max-hold a command gets TERM, and KILL after the grace, before another can start", async () => {
    const first = await stubbornly("maximum", ["--max-hold", "500ms"]);
    const second = cli.start(["run", "-k", "maximum", "--wait", "forever", "--", "date", "+%s%N"]);
    const [one, two] = await Promise.all([first.ended, second.ended]);
    expect([one.code, two.code]).toEqual([79, 0]);
    expect(await lastBeat()).toBeLessThan(BigInt(two.out.trim()));
    expect(await cli.read("heard")).toBe("TERM\n");
    expect(one.err).toMatch(/held for --max-hold 500ms; SIGTERM.*not ended within 600ms; SIGKILL/s);
  });

  test("at --max-hold --on-lost signal releases the lock after the grace, and the command goes on", async () => {
    const script = 'trap "sleep 0.8; echo cleaned; exit 0" TERM; echo in; while :; do sleep 0.02; done';
    const flags = ["--ttl", "1s", "--grace", "400ms", "--max-hold", "100ms", "--on-lost"];
    const running = cli.start(["run", "-k", "notified", ...flags, "signal=TERM", "--", "sh", "-c", script]);
    const { code, out, err } = await running.ended;
    expect({ code, out }).toEqual({ code: 0, out: "in\ncleaned\n" });
    expect(err).toMatch(/is released in 400ms; SIGTERM.*"notified" is released; the command goes on/s);
    expect(await cli.redis.client().exists("lock:notified")).toBe(0);
  });

  test("kill -9 of holdfast ends the command and its children", async () => {
    const script = '(trap "" TERM HUP; while :; do sleep 0.05; done) & echo $! $$; wait';
    const running = cli.start(["run", "-k", "killed", "-v", "--", "sh", "-c", script]);
    await waitUntil(() => /\d+ \d+\n/.test(running.out()) && running.err().includes("runs"), "both run");
    const pids = running.out().trim().split(" ").map(Number);
    expect(await Promise.all(pids.map(isRunning))).toEqual([true, true]);
    running.kill("SIGKILL");
    await waitUntil(async () => !(await Promise.all(pids.map(isRunning))).includes(true), "both have ended");
  });

  test.each([
    ["warn", "in\nstill in\n"],
    ["signal=USR1", "in\nUSR1\nstill in\n"],
  ])("--on-lost %s leaves the command its life", async (onLost, said) => {
    const script =
      'trap "echo USR1" USR1; echo in; while [ ! -e lost ]; do sleep 0.02; done; echo still in; exit 4';
    await cli.spawn("rm", ["-f", "lost"]).ended;
    const running = cli.start(["run", "-k", onLost, ...times, "--on-lost", onLost, "--", "sh", "-c", script]);
    await waitUntil(() => running.out() !== "", "it is in");
    await cli.redis.client().set(`lock:${onLost}`, "somebody else");
    await waitUntil(() => running.err().includes("lost"), "it is told");
    await cli.spawn("touch", ["lost"]).ended;
    expect(await running.ended).toMatchObject({ code: 4, out: said });
  });
});
