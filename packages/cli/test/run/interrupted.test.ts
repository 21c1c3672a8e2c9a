import { startProxy, waitUntil } from "@holdfast/test-kit";
import { expect, test } from "vitest";

import { commandLine } from "../support/cli.ts";
import { onRedis } from "../support/servers.ts";

onRedis("Ctrl-C", () => {
  const cli = commandLine();

  test("while it connects ends it, 130, and the command never runs", async () => {
    const proxy = await startProxy(cli.redis.port);
    try {
      proxy.pause("replies");
      const running = cli.start(["run", "-k", "connecting", "--wait", "forever", "--", "echo", "ran"], {
        env: { HOLDFAST_URL: `redis://127.0.0.1:${proxy.port}` },
      });
      await waitUntil(() => proxy.size > 0, "it connects");
      running.kill("SIGINT");
      expect(await running.ended).toMatchObject({ code: 130, out: "" });
    } finally {
      await proxy.stop();
    }
  });

  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)("%s while it waits ends it with %d, and it leaves the queue", async (signal, code) => {
    const key = `waiting-${signal}`;
    const holder = cli.start(["run", "-k", key, "--", "sh", "-c", "echo in; exec sleep 60"]);
    await waitUntil(() => holder.out() !== "", "the holder is in");
    const waiter = cli.start(["run", "-k", key, "--wait", "forever", "--", "echo", "ran"]);
    const client = cli.redis.client();
    const waiting = (): Promise<number> => client.zcard(`holdfast:queue:{lock:${key}}`);
    await waitUntil(async () => (await waiting()) === 1, "it waits");
    waiter.kill(signal);
    expect(await waiter.ended).toMatchObject({ code, out: "" });
    expect(await waiting()).toBe(0);
  });

  test("after an unreceived grant ends it, 130, and the grant is released", async () => {
    const proxy = await startProxy(cli.redis.port);
    try {
      proxy.muteConnections(/\*2\r\n:\d{16}\r\n:\d{16}\r\n/); // the time, and the number of who is granted the lock
      const running = cli.start(["run", "-k", "unheard", "--", "echo", "ran"], {
        env: { HOLDFAST_URL: `redis://127.0.0.1:${proxy.port}` },
      });
      const client = cli.redis.client();
      const isHeld = async (): Promise<boolean> => (await client.exists("lock:unheard")) === 1;
      await waitUntil(isHeld, "it is granted");
      running.kill("SIGINT");
      expect(await running.ended).toMatchObject({ code: 130, out: "" });
      expect(await isHeld()).toBe(false);
    } finally {
      await proxy.stop();
    }
  });

  test("at any time leaves no lock and no running command", async () => {
    const client = cli.redis.client();
    const codes = new Set<number | null>();
    // The delays reach from before the program's first line to after the command's start, which is later on a busy machine.
    for (
      let delayMs = 0;
      delayMs <= 400 || (!codes.has(130) && delayMs < 10_000);
      delayMs += delayMs < 400 ? 25 : 400
    ) {
      const key = `whenever-${delayMs}`;
      const running = cli.start(["run", "-k", key, "--", "sleep", "60"]);
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      running.kill("SIGINT");
      const { code, signal } = await running.ended;
      codes.add(code);
      expect(code === 130 || signal === "SIGINT", `ended by ${code ?? signal}`).toBe(true);
      // Before the program's first line the system ends the process, so no residue is possible.
      expect(await client.exists(`lock:${key}`), `after ${delayMs} ms`).toBe(0);
    }
    expect(codes).toContain(130);
  });

  test("during the command goes to the command, which may continue", async () => {
    const script = 'trap "echo not yet" INT; echo in; while [ ! -e enough ]; do sleep 0.02; done; exit 6';
    const running = cli.start(["run", "-k", "goes-on", "--", "sh", "-c", script]);
    await waitUntil(() => running.out() === "in\n", "it is in");
    running.kill("SIGINT");
    await waitUntil(() => running.out() === "in\nnot yet\n", "it heard");
    running.kill("SIGINT");
    await waitUntil(() => running.out() === "in\nnot yet\nnot yet\n", "it heard again");
    await cli.spawn("touch", ["enough"]).ended;
    expect((await running.ended).code).toBe(6);
  });

  test("during the release ends the wait for the reply, and the command's code is returned", async () => {
    const proxy = await startProxy(cli.redis.port);
    try {
      const script = "echo in; while [ ! -e done ]; do sleep 0.02; done; exit 8";
      // Without the signal the release would wait for longer than this test.
      const url = `redis://127.0.0.1:${proxy.port}?commandTimeoutMs=600000`;
      const env = { HOLDFAST_URL: url };
      const running = cli.start(["run", "-k", "giving-back", "--", "sh", "-c", script], { env });
      await waitUntil(() => running.out() !== "", "it is in");
      proxy.pause("replies");
      await cli.spawn("touch", ["done"]).ended;
      const client = cli.redis.client();
      await waitUntil(async () => (await client.exists("lock:giving-back")) === 0, "the grant is released");
      expect(running.child.exitCode).toBeNull();
      running.kill("SIGINT");
      expect(await running.ended).toMatchObject({ code: 8, err: "" });
    } finally {
      await proxy.stop();
    }
  });

  test("during the minimum hold ends the program, and the lock stays for the requested time", async () => {
    const args = [
      "run",
      "-k",
      "min-hold",
      "--ttl",
      "2s",
      "--min-hold",
      "20s",
      "--",
      "sh",
      "-c",
      "echo in; exit 3",
    ];
    const running = cli.start(args);
    const client = cli.redis.client();
    await waitUntil(() => running.out() !== "", "it is in");
    await waitUntil(async () => (await client.pttl("lock:min-hold")) < 1_500, "the command has ended");
    running.kill("SIGINT");
    expect((await running.ended).code).toBe(3);
    expect(await client.pttl("lock:min-hold")).toBeGreaterThan(15_000);
  });
});
