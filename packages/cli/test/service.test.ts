import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";

import { waitUntil } from "@holdfast/test-kit";
import { createService, newToken } from "@holdfast/server";
import { expect, test } from "vitest";

import { commandLine, type ExitResult, type RunningProcess } from "./support/cli.ts";
import { onRedis } from "./support/servers.ts";

onRedis("a service", () => {
  const cli = commandLine();

  async function serve(...flags: string[]): Promise<RunningProcess & { url: string }> {
    const running = cli.start(["serve", "--port", "0", ...flags]);
    await waitUntil(() => running.out().endsWith("\n"), "it listens");
    return { ...running, url: running.out().trim() };
  }

  test("serve provides locks over HTTP, and the other commands use its URL", async () => {
    const service = await serve();
    expect(service.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const env = { HOLDFAST_URL: service.url };
    const holder = cli.start(
      ["run", "-k", "http", "--", "sh", "-c", "echo $HOLDFAST_FENCING_TOKEN; exec sleep 60"],
      { env },
    );
    await waitUntil(() => holder.out() !== "", "the command runs");
    expect(await cli.redis.client().exists("lock:http")).toBe(1);
    expect((await cli.run(["run", "-k", "http", "--wait", "0", "--", "true"])).code).toBe(75);
    expect((await cli.run(["run", "-k", "http", "--wait", "0", "--", "true"], { env })).code).toBe(75);
    const told = await cli.run(["inspect", "http", "--json"], { env });
    expect(JSON.parse(told.out)).toMatchObject({
      key: "http",
      holders: [{ fencingToken: holder.out().trim() }],
    });
    holder.kill("SIGTERM");
    expect((await holder.ended).code).toBe(143);
    expect((await cli.run(["run", "-k", "http", "--wait", "0", "--", "true"], { env })).code).toBe(0);
    const lease = await cli.run(["acquire", "-k", "paper"], { env });
    expect((await cli.run(["release"], { env, input: lease.out })).code).toBe(0);
    service.kill("SIGTERM");
    expect((await service.ended).code).toBe(0);
  });

  test("a service with authentication accepts HOLDFAST_TOKEN or the token in the URL; other clients get 77", async () => {
    const { token, sha256 } = newToken();
    const grants = [{ scope: "lock:acquire", prefix: "job:" }];
    await writeFile(cli.file("auth.json"), JSON.stringify({ tokens: [{ name: "ci", sha256, grants }] }));
    const service = await serve("--auth-file", "auth.json");
    const run = (url: string, own: string | undefined, key: string): Promise<ExitResult> =>
      cli.run(["run", "-k", key, "--", "echo", "ran"], { env: { HOLDFAST_URL: url, HOLDFAST_TOKEN: own } });
    const inUrl = service.url.replace("//", `//:${token}@`);
    expect(await run(service.url, token, "job:1")).toMatchObject({ code: 0, out: "ran\n", err: "" });
    expect(await run(inUrl, undefined, "job:1")).toMatchObject({ code: 0, out: "ran\n", err: "" });
    const refused = [
      await run(service.url, undefined, "job:1"),
      await run(service.url, "another", "job:1"),
      await run(service.url, token, "deploy"),
    ];
    expect(refused.map(({ code, out }) => [code, out])).toEqual([77, 77, 77].map((code) => [code, ""]));
    const listing = await cli.run(["ls", "job:"], {
      env: { HOLDFAST_URL: service.url, HOLDFAST_TOKEN: token },
    });
    expect([listing.code, listing.out]).toEqual([77, ""]);
    const listingAll = await cli.run(["ls"], { env: { HOLDFAST_URL: service.url, HOLDFAST_TOKEN: token } });
    expect([listingAll.code, listingAll.out]).toEqual([77, ""]);
    expect(refused[0]?.err).toBe(
      "holdfast: the lock service requires a token; set HOLDFAST_TOKEN to the token\n",
    );
    expect(refused[1]?.err).toMatch(/unknown or has expired; the token is that of HOLDFAST_TOKEN/);
    expect(refused.map(({ err }) => err).join() + service.err()).not.toContain(token);
    expect(refused[2]?.err).toMatch(
      /"ci" may not do that to "deploy": .*lock:acquire, which "ci" has only for the prefix "job:"/,
    );
    service.kill("SIGTERM");
    await service.ended;
  });

  test("serve prints a new token, the hash of its text, and an entry that the auth file accepts", async () => {
    const { code, out } = await cli.run(["serve", "--new-token"]);
    const form = /^token {3}(hf_\S+)\nsha256 {2}([0-9a-f]{64})\nentry {3}(\{.*\})\n$/;
    const [, token = "", sha256, entry = ""] = form.exec(out) ?? [];
    expect(code).toBe(0);
    expect(createHash("sha256").update(token).digest("hex")).toBe(sha256);
    expect(JSON.parse(entry)).toMatchObject({ sha256 });
    expect(entry).not.toContain(token);
    await writeFile(cli.file("auth.json"), `{"tokens":[${entry}]}`);
    expect(
      await cli.run(["serve", "--check", "--host", "0.0.0.0", "--auth-file", "auth.json"]),
    ).toMatchObject({
      code: 0,
      err: "",
    });
  });

  test("if a service is killed, the lock of a running command is lost, and the command is ended in time", async () => {
    const service = await serve();
    const script = 'trap "" TERM; echo in; while :; do sleep 0.02; done';
    const running = cli.start(
      ["run", "-k", "killed", "--ttl", "2s", "--grace", "500ms", "--", "sh", "-c", script],
      {
        env: { HOLDFAST_URL: service.url },
      },
    );
    await waitUntil(() => running.out() !== "", "the command runs");
    service.kill("SIGKILL");
    const { code, err } = await running.ended;
    expect(code).toBe(79);
    expect(err).toMatch(/SIGTERM[^]*SIGKILL/);
  });

  test("a break through the service ends a command long before its next renewal", async () => {
    const service = await serve();
    const env = { HOLDFAST_URL: service.url };
    const running = cli.start(["run", "far", "--ttl", "1h", "--", "sh", "-c", "echo in; exec sleep 60"], {
      env,
    });
    await waitUntil(() => running.out() !== "", "the command runs");
    const force = ["release", "--force", "far", "--reason", "stuck", "--yes"];
    expect((await cli.run(force, { env })).code).toBe(0);
    expect(await running.ended).toMatchObject({
      code: 79,
      err: expect.stringMatching(/lost: broken by .+@.+ \(stuck\); SIGKILL/) as unknown,
    });
  });

  test("a break by the command line is the end of its hold in the history of a service", async () => {
    const service = await serve();
    const newest = async (): Promise<Record<string, unknown> | undefined> => {
      const reply = await fetch(`${service.url}/v1/history?key=past`);
      return ((await reply.json()) as { holds: Record<string, unknown>[] }).holds[0];
    };
    expect(await newest()).toBeUndefined();
    expect((await cli.run(["acquire", "-k", "past", "--ttl", "1m"])).code).toBe(0);
    await waitUntil(async () => (await newest()) !== undefined, "the hold is seen");
    const force = ["release", "--force", "past", "--reason", "stuck", "--yes"];
    expect((await cli.run(force)).code).toBe(0);
    await waitUntil(async () => (await newest())?.["end"] === "broken", "it is broken");
    expect(await newest()).toMatchObject({
      break: { principal: expect.stringContaining("@") as unknown, reason: "stuck" },
    });
  });

  test("doctor prints the findings of a service about its engine, or says that they are missing", async () => {
    const { token, sha256 } = newToken();
    const grants = [{ scope: "lock:acquire", prefix: "job:" }] as const;
    const [full, limited] = await Promise.all([
      serve(),
      createService({ engine: cli.url, auth: { tokens: [{ name: "ci", sha256, grants }] } }),
    ]);
    const secured = await limited.listen({ port: 0 });
    const doctor = (url: string, ...flags: string[]): Promise<ExitResult> =>
      cli.run(["doctor", "--url", url, ...flags]);
    const [found, quiet, refused] = await Promise.all([
      doctor(full.url),
      doctor(full.url, "--quiet", "--no-probe"),
      doctor(secured.replace("//", `//:${token}@`)),
    ]);
    expect([found.code, quiet.code, refused.code]).toEqual([2, 2, 0]);
    expect(found.out).toMatch(
      /^service: 127[^]*\n\nCRITICAL:[^]* persistence [^]*\n\nPROBE: [^]*\d critical/,
    );
    expect(quiet.out).toMatch(/^CRITICAL:/);
    expect(quiet.out).not.toMatch(/ critical,/);
    expect(refused.out).toMatch(
      /not-checked[^]*replies 403: Expected the scope admin[^]*"ci" may not do that[^]*0 critical/,
    );
    await limited.close();
  });

  test("invalid settings give 78, and so does a public address without authentication", async () => {
    expect(await cli.run(["serve", "--check"])).toMatchObject({
      code: 0,
      out: expect.stringMatching(/server/) as unknown,
    });
    for (const flags of [[], ["--check"]]) {
      const open = await cli.run(["serve", "--host", "0.0.0.0", "--port", "0", ...flags]);
      expect(open.code).toBe(78);
      expect(open.err).toMatch(/loopback only, not on 0\.0\.0\.0; --auth-file/);
    }
    expect((await cli.run(["serve", "--auth-file", "nothing"])).code).toBe(78);
    const auth: readonly (readonly [string, string])[] = [
      ["{", "auth.json: expected JSON"],
      ["{}", "auth.json: expected at least one token"],
      [
        '{"tokens":[{"name":"ci","sha256":"00","grants":[]},{"sha256":"00","grants":[]}]}',
        "auth.json: tokens[1].name: ",
      ],
      ['{"tokens":[],"jtw":[]}', 'auth.json: Unrecognized key: "jtw"'],
    ];
    for (const [content, message] of auth) {
      await writeFile(cli.file("auth.json"), content);
      const { code, err } = await cli.run(["serve", "--auth-file", "auth.json"]);
      expect(code).toBe(78);
      expect(err).toContain(message);
    }
    expect((await cli.run(["serve", "--port", "123456"])).code).toBe(64);
  });
});
