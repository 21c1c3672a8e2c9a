import { waitUntil } from "@holdfast/test-kit";
import { expect, test } from "vitest";

import { commandLine, type ExitResult } from "../support/cli.ts";
import { onRedis } from "../support/servers.ts";

onRedis("leases for scripts", () => {
  const cli = commandLine();
  const release = (paper: string): Promise<ExitResult> => cli.run(["release"], { input: paper });

  test("renew extends the lease that acquire printed, and release releases it", async () => {
    const client = cli.redis.client();
    const { code, out: paper, err } = await cli.run(["acquire", "-k", "script", "--ttl", "20s"]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(await client.pttl("lock:script")).toBeGreaterThan(15_000);
    expect(await cli.run(["renew", "--ttl", "1h"], { input: paper })).toMatchObject({ code: 0, out: "" });
    expect(await client.pttl("lock:script")).toBeGreaterThan(3_000_000);
    expect((await cli.run(["acquire", "-k", "script", "--wait", "0"])).code).toBe(75);
    expect((await release(paper)).code).toBe(0);
    expect(await client.exists("lock:script")).toBe(0);
    expect(await release(paper)).toMatchObject({
      code: 79,
      err: 'holdfast: the lease of "script" is no longer in force: it was released already, or it expired\n',
    });
  });

  test("renew and release of an ended lease give 79", async () => {
    const { out: paper } = await cli.run(["acquire", "-k", "gone"]);
    await cli.run(["release", "gone", "--force", "--reason", "stuck", "--yes"]);
    expect((await cli.run(["renew"], { input: paper })).code).toBe(79);
    const { code, err } = await release(paper);
    expect(code).toBe(79);
    expect(err).toMatch(/"gone" is no longer in force: it was broken by .+@.+ \(stuck\)\n/);
    const other = await cli.run(["release", "other"], { input: paper });
    expect(other.err).toMatch(/expected the lease of "other", got the lease of "gone"/);
  });

  test("the form env is for eval, with any key", async () => {
    const key = `it's "$HOME" \`id\` \\`;
    const script = `eval "$(${process.execPath} ${cli.program} acquire -k "$1" -o env)"
      printf '%s|%s' "$HOLDFAST_LOCK_KEY" "$HOLDFAST_FENCING_TOKEN"
      exec ${process.execPath} ${cli.program} release`;
    const { code, out } = await cli.spawn("sh", ["-c", script, "sh", key]).ended;
    expect(code).toBe(0);
    expect(out).toMatch(/\|\d+$/);
    expect(out.startsWith(`${key}|`)).toBe(true);
    expect(await cli.redis.client().exists(`lock:${key}`)).toBe(0);
  });

  test("the form json has the key, the token and the end, and is a lease too", async () => {
    const { out } = await cli.run(["acquire", "-k", "json", "-o", "json", "--reason", "because"]);
    const told = JSON.parse(out) as Record<string, unknown>;
    expect(told).toMatchObject({
      version: 1,
      key: "json",
      fencingToken: expect.stringMatching(/^\d+$/) as unknown,
    });
    const renewed = await cli.run(["renew", "--json"], { input: out });
    expect(JSON.parse(renewed.out)).toMatchObject({ fencingToken: told["fencingToken"] });
    expect((await release(renewed.out)).code).toBe(0);
  });

  test("a text that is no lease is refused, and not printed", async () => {
    for (const paper of ["", "secret-nonsense", '{"lease":"secret"}', "[]", '"secret"']) {
      const { code, err } = await release(paper);
      expect(code, paper).toBe(64);
      expect(err).not.toMatch(/secret/);
    }
  });

  test("force breaks the named grant, and its holder is notified", async () => {
    const script = "echo $HOLDFAST_FENCING_TOKEN; exec sleep 60";
    const holder = cli.start(["run", "-k", "force", "--ttl", "5s", "--", "sh", "-c", script]);
    await waitUntil(() => holder.out() !== "", "it holds");
    const fence = holder.out().trim();
    const force = (...more: string[]): Promise<ExitResult> =>
      cli.run(["release", "--force", "force", ...more]);
    expect((await force("--fence", fence)).err).toMatch(/--reason/);
    const unsure = await force("--reason", "stuck");
    expect(unsure.code).toBe(64);
    expect(unsure.err).toContain(`--fence ${fence}`);
    expect((await force("--reason", "stuck", "--fence", "1")).code).toBe(79);
    expect((await force("--reason", "stuck", "--fence", fence)).code).toBe(0);
    expect(await holder.ended).toMatchObject({
      code: 79,
      err: expect.stringMatching(/broken by .+@.+ \(stuck\); SIGKILL/) as unknown,
    });
    expect((await force("--reason", "stuck", "--yes")).code).toBe(79);
  });

  test("force with an owner breaks all locks of that owner, after a confirmation", async () => {
    for (const key of ["pod:a", "pod:b", "pod:c"]) {
      const owner = key === "pod:c" ? "pod-70" : "pod-7";
      expect((await cli.run(["acquire", key, "--owner", owner, "--ttl", "1h"])).code).toBe(0);
    }
    const force = (...more: string[]): Promise<ExitResult> =>
      cli.run(["release", "--force", "--owner", "pod-7", ...more]);
    expect((await force()).err).toMatch(/--reason/);
    expect((await force("--reason", "died", "--fence", "1")).code).toBe(64);
    expect((await cli.run(["release", "--owner", "pod-7", "--reason", "died"])).code).toBe(64);
    const unsure = await force("--reason", "died");
    expect(unsure).toMatchObject({ code: 64, err: expect.stringMatching(/holds 2 locks.*--yes/) as unknown });
    const done = await force("--reason", "died", "--yes");
    expect(done).toMatchObject({
      code: 0,
      err: expect.stringMatching(/2 of 2 grants of "pod-7"/) as unknown,
    });
    const client = cli.redis.client();
    expect(await client.exists("lock:pod:a", "lock:pod:b", "lock:pod:c")).toBe(1);
    expect((await force("--reason", "died", "--yes")).code).toBe(79);
    const audit = await cli.run(["audit", "pod:a", "--json"], { env: { USER: "ada" } });
    expect((JSON.parse(audit.out) as { records: unknown[] }).records).toEqual([
      expect.objectContaining({ key: "pod:a", owner: "pod-7", reason: "died", result: "broken" }),
    ]);
    expect((await cli.run(["audit", "-n", "1"])).out).toMatch(/^TIME .*\n20.* pod-7 .* died .*\n$/);
    const last = await cli.run(["release", "--force", "pod:c", "--reason", "died", "--yes", "--json"]);
    const { results } = JSON.parse(last.out) as {
      results: { key: string; broken: boolean; auditId: string }[];
    };
    expect(results).toMatchObject([{ key: "pod:c", broken: true, auditId: expect.any(String) as unknown }]);
    const found = await cli.run(["audit", "--id", results[0]?.auditId ?? "", "--json"]);
    expect(JSON.parse(found.out)).toMatchObject({ records: [{ key: "pod:c", owner: "pod-70" }] });
  });

  test("a person holds a lock by hand, and releases it; other persons cannot", async () => {
    const freeze = ["hold", "freeze", "--for", "2h", "--reason", "release week"];
    const me = { env: { USER: "ada" } };
    expect((await cli.run(freeze, me)).code).toBe(0);
    const client = cli.redis.client();
    expect(await client.pttl("lock:freeze")).toBeGreaterThan(7_100_000);
    expect((await cli.run(freeze, { env: { USER: "bob" } })).code).toBe(75);
    const held = await cli.run(["inspect", "freeze"]);
    expect(held.out).toMatch(/ada@.*"release week"/);
    expect((await cli.run(["hold", "--release", "freeze"], { env: { USER: "bob" } })).code).toBe(77);
    expect((await cli.run(["hold", "--release", "freeze"], me)).code).toBe(0);
    expect(await client.exists("lock:freeze")).toBe(0);
    expect((await cli.run(["hold", "--release", "freeze"], me)).code).toBe(79);
    expect((await cli.run(["hold", "freeze"])).code).toBe(64);
    expect((await cli.run(["hold", "freeze", "--for", "25h", "--reason", "long"])).code).toBe(64);
  });

  test("once runs a command once in its period; a failure does not count", async () => {
    const once = (...words: string[]): Promise<ExitResult> =>
      cli.run(["once", "daily", "--for", "1h", "--", ...words]);
    expect(await once("sh", "-c", "echo tried; exit 5")).toMatchObject({ code: 5, out: "tried\n" });
    expect(await once("echo", "done")).toMatchObject({ code: 0, out: "done\n" });
    const again = await once("echo", "done");
    expect(again).toMatchObject({ code: 0, out: "" });
    expect(again.err).toMatch(
      /"daily" ran within the last 1h, started by .*; the next run is possible in \d+[hm]/,
    );
    expect(await cli.redis.client().pttl("lock:daily")).toBeGreaterThan(3_500_000);
    expect((await cli.run(["once", "daily", "--for", "1h", "-E", "3", "--", "true"])).code).toBe(3);
    expect((await cli.run(["once", "daily", "--for", "48h", "--", "true"])).code).toBe(64);
  });

  test("once names a run elsewhere, and holds its key no longer than its period", async () => {
    const script = "echo in; while [ ! -e ran ]; do sleep 0.02; done";
    const first = cli.start(["once", "short", "--for", "2s", "--", "sh", "-c", script]);
    await waitUntil(() => first.out() !== "", "it runs");
    const client = cli.redis.client();
    const both = ["once", "-k", "short:a", "-k", "short:b", "--for", "1h", "--", "true"];
    expect((await cli.run(both)).code).toBe(0);
    expect((await cli.run(both)).err).toMatch(/"short:[ab]" is held by .*, so no run began/);
    const second = await cli.run(["once", "short", "--for", "1h", "--", "true"]);
    expect(second.err).toMatch(
      /"short" is being run by .*; the next run is possible in .*Z, or at once if that/,
    );
    await waitUntil(async () => (await client.pttl("lock:short")) < 1_500, "it is renewed soon");
    await waitUntil(async () => (await client.pttl("lock:short")) > 1_600, "it is renewed");
    await cli.spawn("touch", ["ran"]).ended;
    expect((await first.ended).code).toBe(0);
    // The renewal has set an end after the period, so the program has waited for the period, and released the key.
    expect(await client.exists("lock:short")).toBe(0);
  });
});
