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

  test("a misused command names the words to write", async () => {
    const misuses: readonly (readonly [string, number, string | RegExp])[] = [
      [
        "run a b -- x y",
        64,
        /"a" and "b"; .*: holdfast run 'a b' -- x y; .*: holdfast run -k a -k b -- x y\n/,
      ],
      ["run a b", 64, /expected -- before the command; write: holdfast run a -- b\n/],
      ["run k --min-hold 2s --max-hold 1s -- x", 64, /--min-hold to be at most --max-hold/],
      ["run k --max-hold 0 -- x", 64, /--max-hold has to be at least 100ms, got 0ms/],
      ["hold k --for 5m", 64, "holdfast: expected --reason TEXT too, for a lock that is held by hand\n"],
      ["release k", 64, /no lease is given; .*: holdfast release --force k --reason TEXT\n/],
      ["release k --force other --reason x", 64, /one key, got "k" and --force other/],
      ["release k --reason x", 64, /expected --force with --fence and --reason/],
      ["ls --url-file no-such-file", 78, /cannot read the file with the URL: ENOENT/],
      ["release --force --owner po --reason x", 79, /"po" holds no lock; .*--owner is the whole name/],
      ["--url redis://127.0.0.1:1 ls", 69, /^[^(]*connect ECONNREFUSED 127.0.0.1:1\n$/],
      ["-u redis://127.0.0.1:1", 64, /expected a command after -u/],
      ["help inspct", 64, /unknown command 'inspct'\n.*Did you mean inspect/],
      ["inspct --help", 64, /unknown command 'inspct'\n.*Did you mean inspect/],
      ["ls --ownr", 64, /^holdfast: unknown option '--ownr'\n.*Did you mean --owner/],
    ];
    await Promise.all(
      misuses.map(async ([line, code, message]) => {
        const ended = await cli.run(line.split(" "));
        expect([ended.code, ended.err], line).toEqual([
          code,
          typeof message === "string" ? message : expect.stringMatching(message),
        ]);
      }),
    );
  });

  test("the main help has the variables and the exit codes, also after an option", async () => {
    const { code, out } = await cli.run(["help"]);
    expect(code).toBe(0);
    expect(out).toMatch(/Environment:[^]*HOLDFAST_URL [^]*HOLDFAST_TOKEN [^]*Exit codes:[^]* 79 lease lost/);
    expect(await cli.run(["-q", "--url", cli.url, "ls"])).toMatchObject({ code: 0, err: "" });
  });

  test("a held lock is reported with its holder, the wait, and the flag", async () => {
    await cli.run(["hold", "frozen", "--for", "1h", "--reason", "release week\u001b[2J", "--owner", "ada"]);
    const by = 'holdfast: "frozen" is held by ada (release week)';
    expect(await refused("run", "frozen", "--wait", "1s", "--", "true")).toEqual([
      75,
      `${by}; the wait of 1s has ended, --wait 5m or --wait forever waits longer; see holdfast inspect frozen\n`,
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
