import { spawnSync } from "node:child_process";
import { chmod, mkdir, writeFile } from "node:fs/promises";

import { waitUntil } from "@holdfast/test-kit";
import { beforeAll, describe, expect, test } from "vitest";

import { commandLine } from "./support/cli.ts";
import { onRedis } from "./support/servers.ts";

const hasFish = spawnSync("fish", ["--version"]).error === undefined;
const hasZsh = spawnSync("zsh", ["--version"]).error === undefined;

/** Runs the completion function as bash does: the words are split at colons and equals signs. */
const press = `
complete_line() {
  COMP_LINE=$1 COMP_POINT=\${#1} COMP_WORDS=() word=
  for ((at = 0; at < \${#1}; at++)); do
    letter=\${1:at:1}
    case $letter in
      " ") [[ -n $word ]] && COMP_WORDS+=("$word"); word= ;;
      [:=]) [[ -n $word ]] && COMP_WORDS+=("$word"); COMP_WORDS+=("$letter"); word= ;;
      *) word+=$letter ;;
    esac
  done
  case $1 in *[:=]) ;; *) COMP_WORDS+=("$word") ;; esac
  COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
  _holdfast 2>&1
  printf '%s\\n' "\${COMPREPLY[@]}"
}`;

onRedis("completion", () => {
  const cli = commandLine();
  const env = (): Record<string, string> => ({
    PATH: `${cli.file("bin")}:${process.env["PATH"]}`,
    HOLDFAST_COMPLETION_MS: "20000", // the machine may be busy
  });

  beforeAll(async () => {
    await mkdir(cli.file("bin"));
    await writeFile(
      cli.file("bin/holdfast"),
      `#!/bin/sh\nexec "${process.execPath}" "${cli.program}" "$@"\n`,
    );
    await writeFile(cli.file("bin/only-here"), "#!/bin/sh\n");
    await chmod(cli.file("bin/holdfast"), 0o755);
    await chmod(cli.file("bin/only-here"), 0o755);
    await writeFile(cli.file("locks.url"), "");
    await writeFile(cli.file("auth.json"), "");
    for (const key of ["shop:42", "shop:43", "a b"]) {
      await cli.run(["acquire", key, "--ttl", "1h"]);
    }
  });

  test.each(["bash", "zsh", "fish", "powershell"])("a script for %s is printed", async (shell) => {
    const { code, out } = await cli.run(["completion", shell]);
    expect(code).toBe(0);
    expect(out).toContain("holdfast complete");
    expect(out).not.toContain("\\${");
  });

  test("another shell is refused", async () => {
    expect((await cli.run(["completion", "tcsh"])).code).toBe(64);
  });

  test.each([
    [["in"], ["inspect"]],
    [["run", "--on"], ["--on-lost"]],
    [
      ["run", "--if-held", ""],
      ["wait", "skip", "fail"],
    ],
    [["run", "--if-held=s"], ["--if-held=skip"]],
    [
      ["inspect", "shop:"],
      ["shop:42", "shop:43"],
    ],
    [["run", "--key", "a"], ["a b"]],
    [["release", "--force", "shop:43"], ["shop:43"]],
    [["release", "--force", "--ow"], ["--owner"]],
    [["release", "--force", "--owner", "pod-7", "--y"], ["--yes"]],
    [["run", "deploy", "-"], expect.arrayContaining(["--", "--wait"])],
    [["completion", "z"], ["zsh"]],
    [["no-such-command", ""], []],
  ] as [string[], string[]][])("%j is completed with %j", async (words, texts) => {
    const { out } = await cli.run(["complete", "--", ...words], { env: env() });
    const lines = out.trimEnd().split("\n");
    expect(lines.at(-1)).toBe(":candidates");
    expect(lines.slice(0, -1).map((line) => line.split("\t")[0])).toEqual(texts);
  });

  test.each([
    [["serve", "--auth-file", ""], ":files"],
    [["ls", "--url-file="], ":files"],
    [["top", "--analyze", "x"], ":files"],
    [["run", "-k", "deploy", "--", "gi"], ":command 4"],
    [["run", "deploy", "--wait", "5m", "--", "ls", "-"], ":command 5"],
    [["run", "-k", "deploy", "ls", "-"], ":command 3"],
    [["once", "daily", "--for", "1h", "--", ""], ":command 5"],
  ])("%j is left to the shell: %s", async (words, directive) => {
    expect((await cli.run(["complete", "--", ...words])).out).toBe(`${directive}\n`);
  });

  test("without an engine no key is offered, without a message and within a second", async () => {
    const startedAt = performance.now();
    const words = ["inspect", "--url", "redis://127.0.0.1:1", "sh"];
    expect(await cli.run(["complete", "--", ...words])).toMatchObject({
      code: 0,
      out: ":candidates\n",
      err: "",
    });
    // The limit is 300 ms. The rest is the start of the program on a busy machine.
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect(await cli.run(["complete", "--", "inspect", ""], { env: { HOLDFAST_URL: "" } })).toMatchObject({
      code: 0,
      err: "",
    });
  });

  test.each([
    ["holdfast insp", "inspect"],
    ["holdfast run --if-held=sk", "skip"],
    ["holdfast inspect shop:", "42\n43"],
    ["holdfast inspect a", "a\\ b"],
    ["holdfast run --key=shop:42", "42"],
    ["holdfast serve --auth-file au", "auth.json"],
    ["holdfast ls --url-file=lo", "locks.url"],
    ["holdfast run deploy -- only-h", "only-here"],
    ["holdfast run shop:42 --wait 5m -- cat au", "auth.json"],
    ["holdfast once daily --for 1h -- cat ", expect.stringContaining("locks.url")],
  ])("bash without other packages completes %j", async (line, completed) => {
    const script = `for i in 1 2; do . <(holdfast completion bash); done\n${press}\ncomplete_line ${JSON.stringify(line)}`;
    const { out, err } = await cli.spawn("bash", ["--norc", "-c", script], { env: env() }).ended;
    expect({ out: out.trimEnd(), err }).toEqual({ out: completed, err: "" });
  });

  describe.skipIf(!hasFish)("fish", () => {
    test.each([
      ["holdfast insp", /^inspect\t/],
      ["holdfast inspect shop:", /^shop:42\nshop:43$/],
      ["holdfast serve --auth-file au", /^auth\.json$/],
      ["holdfast run deploy -- only-h", /^only-here\t/],
      ["holdfast run deploy -- cat au", /^auth\.json$/],
    ])("completes %j", async (line, completed) => {
      const script = `holdfast completion fish | source\ncomplete -C ${JSON.stringify(line)}`;
      const { out } = await cli.spawn("fish", ["--no-config", "-c", script], { env: env() }).ended;
      expect(out.trimEnd()).toMatch(completed);
    });
  });

  // With a pipe as its input, zsh has no line editor and completes nothing. Therefore the test gives zsh a terminal of its own.
  test.skipIf(!hasZsh)(
    "zsh completes commands, keys and the words of the command in its own terminal",
    async () => {
      const shell = cli.spawn("script", ["-qec", "exec zsh -f -i", "/dev/null"], {
        env: { ...env(), TERM: "dumb", HOME: cli.file(".") },
        isInteractive: true,
      });
      const type = (keys: string): void => void shell.child.stdin?.write(keys);
      const shows = (text: string): Promise<void> =>
        waitUntil(() => shell.out().includes(text), `zsh shows ${text}`, 20_000);
      type("autoload -Uz compinit; compinit -u -D; source <(holdfast completion zsh); echo rea''dy\n");
      await shows("ready\r\n");
      const clear = "\u0015";
      for (const [typed, completed] of [
        ["holdfast insp", "holdfast inspect "],
        ["holdfast inspect a", "holdfast inspect a\\ b "],
        ["holdfast run deploy -- only-h", "-- only-here "],
      ] as const) {
        type(`${typed}\t`);
        await shows(completed);
        type(clear);
      }
      shell.kill("SIGKILL");
    },
  );
});
