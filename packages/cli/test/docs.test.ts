import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";

import { beforeAll, describe, expect, test } from "vitest";

import { commandLine } from "./support/cli.ts";
import { onRedis } from "./support/servers.ts";

const text = await readFile(new URL("../../../docs/cli.md", import.meta.url), "utf8");

/** A command of the document, and its documented output, in which `…` stands for any text. */
interface Example {
  readonly command: string;
  readonly output: string;
}

/** The examples by section. The examples of one section are one session. */
const sections = text.split(/^## /m).map((section) => ({
  title: section.slice(0, section.indexOf("\n")),
  examples: [...section.matchAll(/^```console\n(.*?)^```$/gms)].flatMap(([, block = ""]) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((one): Example => ({
        command: one.slice(0, one.indexOf("\n")),
        output: one.slice(one.indexOf("\n") + 1).trimEnd(),
      })),
  ),
}));
const commands = sections.flatMap(({ examples }) => examples.map(({ command }) => command));

onRedis("docs/cli.md", () => {
  const cli = commandLine();

  beforeAll(async () => {
    await mkdir(cli.file("bin"));
    await writeFile(
      cli.file("bin/holdfast"),
      `#!/bin/sh\nexec "${process.execPath}" "${cli.program}" "$@"\n`,
    );
    await chmod(cli.file("bin/holdfast"), 0o755);
  });

  test.each(sections.filter(({ examples }) => examples.length > 0))(
    "the examples of $title",
    async ({ examples }) => {
      const script = examples
        .map(({ command }, index) => `${command}\nlast=$?; echo "<<${index}>>"; (exit $last)`)
        .join("\n");
      const env = { PATH: `${cli.file("bin")}:${process.env["PATH"]}`, USER: "ada" };
      const { out } = await cli.spawn("bash", ["-c", `exec 2>&1\n${script}`], { env }).ended;
      let rest = out;
      for (const [index, { command, output }] of examples.entries()) {
        const [said = "", ...more] = rest.split(`<<${index}>>\n`);
        rest = more.join("");
        expect(said.trimEnd(), command).toMatch(pattern(output));
      }
    },
  );

  test("every flag of every command is in an example, and in the text", async () => {
    const { out } = await cli.run(["--help"]);
    const names = [...out.matchAll(/^ {2}([a-z]+)(?: \[| <)/gm)].map(([, name]) => name as string);
    expect(names.length).toBeGreaterThan(13);
    for (const name of names.filter((one) => one !== "help")) {
      const help = (await cli.run([name, "--help"])).out;
      const own = commands.filter((command) => command.includes(`holdfast ${name} `));
      expect(own, name).not.toEqual([]);
      for (const [, short, long] of help.matchAll(/^ {2}(?:(-\w), )?(--[a-z-]+)/gm)) {
        const isUsed = (words: string): boolean =>
          [short, long].some(
            (flag) => flag !== undefined && new RegExp(`(^|[ \`])${flag}([ =\`\\n]|$)`).test(words),
          );
        // Common flags are shown once.
        const shown = /^--(url|url-file|quiet|verbose|help)$/.test(long as string) ? commands : own;
        expect(shown.some(isUsed) || long === "--help", `${name} ${long}`).toBe(true);
        expect(isUsed(text), `${name} ${long} in the text`).toBe(true);
      }
    }
  }, 60_000);

  describe("the exit codes", () => {
    test("of the table are those of the examples, except for internal errors", () => {
      const table = text.slice(text.indexOf("## Exit codes"), text.indexOf("## once"));
      const named = [...table.matchAll(/^\| (\d+)(?:, (\d+))? +\|/gm)]
        .flatMap(([, a, b]) => [a, b])
        .filter(Boolean);
      const shown = sections.flatMap(({ examples }) =>
        examples.filter(({ command }) => command === "echo $?").map(({ output }) => output),
      );
      expect(named).toContain("79");
      // Exit code 1 is doctor's. Its findings here include a critical one, so doctor's tests cover that code.
      expect(
        named.filter((code) => code !== "70" && code !== "1" && !shown.includes(code as string)),
      ).toEqual([]);
    });
  });
});

function pattern(says: string): RegExp {
  const escaped = says.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll("…", "[^]*?");
  return new RegExp(`^${escaped}${says.endsWith("do:  …") ? "[^]*" : ""}$`);
}
