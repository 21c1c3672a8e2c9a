import { chmod, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { waitUntil } from "@holdfast/test-kit";
import { beforeAll, expect, test } from "vitest";

import { commandLine } from "./support/cli.ts";
import { onRedis } from "./support/servers.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
/** These documents have tests of their own, which also compare the output. */
const testedElsewhere = ["docs/cli.md", "docs/service.md"];
/** Exit codes other than 0: `doctor` finds risks of the test's server, which stores nothing. */
const otherCodes: Readonly<Record<string, readonly number[]>> = { doctor: [1, 2] };
const documentedService = "http://127.0.0.1:7420";

interface Line {
  readonly document: string;
  readonly command: string;
}

const documents = [
  ...(await readdir(root)),
  ...(await readdir(`${root}docs`, { recursive: true })).map((name) => `docs/${name}`),
  ...(await readdir(`${root}packages`)).map((name) => `packages/${name}/README.md`),
].filter((name) => name.endsWith(".md") && !testedElsewhere.includes(name));

/** The commands of the shell blocks that call holdfast or curl. */
const lines: Line[] = (await Promise.all(documents.map(async (document) => commandsOf(document)))).flat();

async function commandsOf(document: string): Promise<Line[]> {
  const text = await readFile(`${root}${document}`, "utf8");
  const blocks = [...text.matchAll(/^ *```(?:sh|bash|console)\n(.*?)^ *```$/gms)].map(
    ([, block = ""]) => block,
  );
  return blocks
    .flatMap((block) => block.replaceAll("\\\n", " ").split("\n"))
    .map((line) =>
      line
        .trim()
        .replace(/^\$ /, "")
        .replace(/^npx holdfast /, "holdfast "),
    )
    .filter((line) => /^(holdfast|curl) /.test(line))
    .map((command) => ({ document, command }));
}

onRedis("the command lines of the documents", () => {
  const cli = commandLine();
  let leaseId = "";

  beforeAll(async () => {
    await mkdir(cli.file("bin"));
    await writeFile(
      cli.file("bin/holdfast"),
      `#!/bin/sh\nexec "${process.execPath}" "${cli.program}" "$@"\n`,
    );
    await chmod(cli.file("bin/holdfast"), 0o755);
    await writeFile(cli.file("deploy.sh"), "#!/bin/sh\n");
    await chmod(cli.file("deploy.sh"), 0o755);
    await writeFile(cli.file("report.js"), "");
    // Programs of others, which the documents run under a lock. The tests of the recipes run what can be run.
    for (const program of ["npx", "terraform"]) {
      await writeFile(cli.file(`bin/${program}`), "#!/bin/sh\n");
      await chmod(cli.file(`bin/${program}`), 0o755);
    }
  });

  test("exist", () => {
    expect(lines.map(({ document }) => document)).toEqual(
      expect.arrayContaining(["README.md", "packages/cli/README.md", "packages/server/README.md"]),
    );
  });

  /** A script that ends the console by a signal after it has printed its address. */
  const untilItsAddress = (console: string): string =>
    `coproc exec ${console} --no-open; pid=$COPROC_PID; read -r address <&"\${COPROC[0]}" && kill "$pid"; wait "$pid"`;

  // The commands run in order, because a release names the lease of the acquire before it.
  test.each(lines)("$document: $command", async ({ command }) => {
    const line = (await withService(command))
      .replaceAll("<leaseId>", leaseId)
      .replace(/^curl /, "curl --silent --show-error --fail-with-body ")
      .replace(/^holdfast top$/, "holdfast top --once") // without an option it needs a terminal
      .replace(/^holdfast console .*/, untilItsAddress)
      .replaceAll("redis://127.0.0.1:6379", cli.url);
    const env = { PATH: `${cli.file("bin")}:${process.env["PATH"]}`, DATABASE_URL: cli.url };
    const { code, out, err } = await cli.spawn("bash", ["-c", line], { env }).ended;
    const name = /^holdfast (\w+)/.exec(command)?.[1] ?? "";
    expect([0, ...(otherCodes[name] ?? [])], `${line}\n${out}${err}`).toContain(code);
    leaseId = /"leaseId":"([^"]+)"/.exec(out)?.[1] ?? leaseId;
  });

  /** The command with the address of a new service, if it calls one. */
  async function withService(command: string): Promise<string> {
    if (!command.includes(documentedService)) return command;
    const service = cli.start(["serve", "--port", "0"]);
    await waitUntil(() => service.out().endsWith("\n"), "it listens");
    return command.replaceAll(documentedService, service.out().trim());
  }
});
