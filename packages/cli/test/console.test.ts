import { chmod, mkdir, writeFile } from "node:fs/promises";

import { createService } from "@holdfast/server";
import { waitUntil } from "@holdfast/test-kit";
import { expect, test } from "vitest";

import { commandLine } from "./support/cli.ts";
import { onRedis } from "./support/servers.ts";

onRedis("console", () => {
  const cli = commandLine();

  async function started(
    args: readonly string[],
  ): Promise<{ address: string; end: () => Promise<number | null> }> {
    const running = cli.start(["console", ...args]);
    await waitUntil(() => running.out().endsWith("\n"), "the console is served");
    const end = async (): Promise<number | null> => {
      running.kill("SIGINT");
      return (await running.ended).code;
    };
    return { address: running.out().trim(), end };
  }

  test("is served on this machine until Ctrl-C, with the locks of the engine", async () => {
    await cli.run(["acquire", "console:1", "--ttl", "1h", "--owner", "ada"]);
    const { address, end } = await started(["--no-open"]);
    expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/console\/$/);
    expect(await (await fetch(address)).text()).toContain("<title>");
    const locks = await (await fetch(new URL("../v1/locks?prefix=console:", address))).json();
    expect(locks).toMatchObject({ locks: [{ key: "console:1", holders: [{ owner: "ada" }] }] });
    const diagnosis = await (await fetch(new URL("../v1/doctor", address))).json();
    expect(diagnosis).toMatchObject({
      topology: "server",
      findings: expect.arrayContaining([expect.objectContaining({ level: "critical" })]) as unknown,
    });
    expect(await end()).toBe(130);
  });

  test("refuses to break locks with --read-only", async () => {
    const { address, end } = await started(["--no-open", "--read-only"]);
    const body = JSON.stringify({ key: "k", fencingToken: "1", reason: "because" });
    const headers = { "content-type": "application/json" };
    const reply = await fetch(new URL("../v1/lock/break", address), { method: "POST", headers, body });
    expect(reply.status).toBe(403);
    await end();
  });

  test.skipIf(process.platform !== "linux")("opens the browser, and needs none", async () => {
    const folder = cli.file("bin");
    await mkdir(folder);
    await writeFile(`${folder}/xdg-open`, `#!/bin/sh\necho "$1" > "${cli.file("opened")}"\n`);
    await chmod(`${folder}/xdg-open`, 0o755);
    const service = await createService();
    const url = await service.listen({ port: 0 });
    const withBrowser = { env: { PATH: `${folder}:${process.env["PATH"]}` } };
    const shown = await cli.run(["console", "--url", `${url}/?x=1`], withBrowser);
    expect(shown).toMatchObject({ code: 0, out: `${url}/console/\n`, err: "" });
    await waitUntil(async () => (await cli.read("opened")) === `${url}/console/\n`, "the browser is opened");
    expect(await cli.run(["console", "--url", url], { env: { PATH: "" } })).toMatchObject({
      code: 0,
      err: "",
    });
    await service.close();
  });

  test("shows no token of the URL of a service", async () => {
    const shown = await cli.run(["console", "--no-open", "--url", "https://:secret@locks.example/below"]);
    expect(shown).toMatchObject({ code: 0, out: "https://locks.example/below/console/\n" });
  });

  test("refuses an engine inside its own process, and --read-only for a service", async () => {
    expect((await cli.run(["console", "--url", "memory:"])).code).toBe(78);
    expect((await cli.run(["console", "--url", "https://locks.example", "--read-only"])).code).toBe(64);
  });
});
