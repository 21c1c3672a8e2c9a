import { expect, test } from "vitest";

import { commandLine } from "../support/cli.ts";
import { onRedis } from "../support/servers.ts";

onRedis("the key as an argument", () => {
  const cli = commandLine();

  test.each([
    [["run", "deploy", "--", "echo", "-n", "ran"], "ran"],
    [["run", "deploy", "--wait", "5m", "--reason=why", "--", "echo", "-n", "ran"], "ran"],
    [["run", "--ttl", "5s", "deploy", "-c", 'echo -n "$HOLDFAST_LOCK_KEY $1"', "--", "x"], "deploy "],
    [["run", "-k", "deploy", "echo", "-n", "ran"], "ran"],
    [["run", "-k", "deploy", "--", "echo", "-n", "a", "--", "b"], "a -- b"],
    [["once", "daily:1", "--for", "1h", "--", "echo", "-n", "ran"], "ran"],
    [["once", "-k", "daily:2", "--for", "1h", "echo", "-n", "ran"], "ran"],
  ] as const)("%j runs its command", async (args, out) => {
    expect(await cli.run(args)).toEqual({ code: 0, signal: null, out, err: "" });
  });

  test.each([
    [["run"], "write: holdfast run KEY -- COMMAND"],
    [["run", "--", "./x", "a b"], "write: holdfast run KEY -- ./x 'a b'"],
    [["run", "--", "a", "--", "b"], "write: holdfast run KEY -- a -- b"],
    [["run", "deploy", "./x", "prod"], "write: holdfast run deploy -- ./x prod"],
    [["run", "deploy"], "no command is given; write it after --"],
    [["run", "deploy", "-k", "other", "--", "x"], "expected one key before --, or all keys with --key"],
    [["run", "deploy", "--no-such-flag", "--", "x"], "unknown option --no-such-flag"],
    [["run", "deploy", "--shared", "--limit", "2", "--", "x"], "expected --shared or --limit, got both"],
    [["once", "daily", "--for", "1h", "ls", "-l"], "write: holdfast once daily -- ls -l"],
    [["once", "daily", "--", "ls"], "write: holdfast once daily --for 20h -- COMMAND"],
    [["acquire"], "write: holdfast acquire KEY"],
    [["acquire", "a", "-k", "b"], 'expected one key, got "a" and --key b'],
    [["hold", "--for", "1h", "--reason", "x"], "write: holdfast hold KEY"],
  ] as const)("%j is refused with the line to write", async (args, message) => {
    const { code, out, err } = await cli.run(args);
    expect({ code, out }).toEqual({ code: 64, out: "" });
    expect(err).toContain(message);
  });

  test("acquire and hold take the key as an argument, or with --key", async () => {
    expect((await cli.run(["acquire", "argument"])).out).toContain('"key":"argument"');
    expect((await cli.run(["acquire", "-k", "flag"])).out).toContain('"key":"flag"');
    expect((await cli.run(["hold", "-k", "held", "--for", "1s", "--reason", "x"])).err).toContain(
      '"held" is held',
    );
  });

  test("the help is also printed after a key", async () => {
    expect(await cli.run(["run", "deploy", "--help"])).toMatchObject({ code: 0, err: "" });
  });
});
