import { stripVTControlCharacters } from "node:util";

import { waitUntil } from "@holdfast/test-kit";
import { expect, test } from "vitest";

import { commandLine, type RunningProcess } from "../support/cli.ts";
import { onRedis } from "../support/servers.ts";

onRedis("top", () => {
  const cli = commandLine();

  function live(...flags: string[]): RunningProcess & { type(keys: string): void; screen(): string } {
    const words = [process.execPath, cli.program, "top", "--every", "50ms", ...flags].join(" ");
    const running = cli.spawn("script", ["-qec", `stty rows 24 cols 100; exec ${words}`, "/dev/null"], {
      env: { TERM: "xterm" },
      isInteractive: true,
    });
    return {
      ...running,
      type: (keys) => void running.child.stdin?.write(keys),
      screen: () => stripVTControlCharacters(running.out()),
    };
  }

  test("--once prints one frame", async () => {
    await cli.run(["acquire", "-k", "once:a", "--owner", "ada", "--reason", "why not"]);
    const { code, out } = await cli.run(["top", "once:", "--once"]);
    expect(code).toBe(0);
    expect(out).toMatch(/1 held, 0 waiting, 0 stale/);
    expect(out).toMatch(/^> +once:a +mutex +ada +\d+ +\d+m?s +\d+s +0 +- +held +why not$/m);
    expect(out).not.toContain("\u001b");
    expect(out).not.toContain("q quit");
  });

  test("a narrow terminal shows the key, the holder, the age and the state, and a wide one all columns", async () => {
    await cli.run(["acquire", "-k", "narrow:a", "--owner", "ada", "--reason", "why not"]);
    await cli.redis.client().set("lock:narrow:b", "another's", "PX", 60_000);
    const frame = async (columns: number): Promise<string> =>
      (await cli.run(["top", "narrow:", "--once"], { env: { COLUMNS: String(columns) } })).out;
    expect(await frame(160)).toMatch(
      /^ +KEY +KIND +HOLDER +FENCE +HELD +LEFT +WAITING +OLDEST WAIT +STATE +REASON$/m,
    );
    const [wide, narrow] = [await frame(75), await frame(45)];
    expect(wide).toMatch(/^ +KEY +HOLDER +HELD +LEFT +WAITING +OLDEST WAIT +STATE$/m);
    expect(narrow).toMatch(/^ +KEY +HOLDER +HELD +STATE$/m);
    expect(narrow).toMatch(/^> +narrow:a +ada +\d+m?s +held$/m);
    expect(narrow).toMatch(/^ +! +narrow:b +unknown +\S+ +foreign$/m);
  });

  test("--analyze shows what ls --json wrote", async () => {
    await cli.run(["acquire", "-k", "file:a", "--owner", "ada"]);
    await cli.spawn("sh", ["-c", `${process.execPath} ${cli.program} ls file: --json > locks.json`]).ended;
    const { code, out } = await cli.run(["top", "--analyze", "locks.json"], {
      env: { HOLDFAST_URL: undefined },
    });
    expect(code).toBe(0);
    expect(out).toMatch(/file:a +mutex +ada/);
    expect((await cli.run(["top", "--analyze", "nothing"])).code).toBe(64);
  });

  test("without a terminal top names the alternatives", async () => {
    const { code, err } = await cli.run(["top"]);
    expect(code).toBe(64);
    expect(err).toMatch(/--once/);
  });

  test("top is live: locks appear and vanish, are sorted, filtered and shown in detail, and the terminal is restored", async () => {
    const top = live("live:");
    await waitUntil(() => top.screen().includes("0 held"), "the first frame");
    await cli.run(["acquire", "-k", "live:b", "--ttl", "1h", "--owner", "bob"]);
    await cli.run(["acquire", "-k", "live:a", "--ttl", "2h", "--owner", "ada"]);
    await waitUntil(() => top.screen().includes("live:a"), "both are shown");
    top.type("t");
    await waitUntil(() => top.screen().includes("[by left]"), "sorted by the remaining time");
    top.type("/bob\r");
    await waitUntil(() => top.screen().includes("/bob"), "filtered");
    top.type("\r");
    await waitUntil(
      () => /observed history\s[^]*\|=+\s*\|[^]*bob/.test(top.screen()),
      "details with a time line",
    );
    top.type("x?");
    await waitUntil(() => top.screen().includes("mark; u then breaks"), "help");
    top.type("q");
    const { code, out } = await top.ended;
    expect(code).toBe(0);
    expect(out).toContain("\u001b[?1049h");
    expect(out.trimEnd().endsWith("\u001b[?25h\u001b[?1049l")).toBe(true);
  });

  test("u breaks the marked locks, only after a confirmation", async () => {
    const client = cli.redis.client();
    for (const key of ["break:a", "break:b", "break:c"]) {
      await cli.run(["acquire", "-k", key, "--ttl", "1h"]);
    }
    const top = live("break:");
    await waitUntil(() => top.screen().includes("break:c"), "all are shown");
    top.type("o j");
    top.type("u");
    await waitUntil(() => /Break "break:[abc]" of .*\? \(y\/n\)/.test(top.screen()), "the question");
    top.type("nt");
    await waitUntil(() => top.screen().includes("[by left]"), "top continues");
    expect(await client.exists("lock:break:a", "lock:break:b", "lock:break:c")).toBe(3);
    top.type("uy");
    await waitUntil(
      async () => (await client.exists("lock:break:a", "lock:break:b", "lock:break:c")) === 2,
      "one is broken",
    );
    await waitUntil(() => top.screen().includes("is broken"), "the break is reported");
    top.kill("SIGTERM");
    await top.ended;
  });

  test("a lease without renewals is stale", async () => {
    const top = live("stale:");
    await waitUntil(() => top.screen().includes("0 held"), "the first frame");
    await cli.run(["acquire", "-k", "stale:a", "--ttl", "3s"]);
    await waitUntil(() => top.screen().includes("1 stale"), "it is stale");
    expect(top.screen()).toMatch(/stale:a .* late/);
    top.type("q");
    expect((await top.ended).code).toBe(0);
  });
});
