import { createLocks } from "holdfast";
import { connect } from "holdfast/connect";
import { waitUntil } from "@holdfast/test-kit";
import { expect, test } from "vitest";

import type { CommandLine, ExitResult } from "./cli.ts";

/** The commands on an engine that is no Redis. They are the same on all engines, so one has these tests. */
export function testCommands(cli: CommandLine, url: () => string): void {
  const run = (...args: string[]): Promise<ExitResult> => cli.run(args, { env: { HOLDFAST_URL: url() } });

  test("runs a command under a lock, shows the lock, and breaks it", async () => {
    const command = ["sh", "-c", "echo $HOLDFAST_FENCING_TOKEN; exec sleep 60"];
    const env = { HOLDFAST_URL: url() };
    const holder = cli.start(["run", "-k", "nightly", "--", ...command], { env });
    await waitUntil(() => holder.out() !== "", "the command runs");
    const fencingToken = holder.out().trim();
    expect((await run("run", "-k", "nightly", "--wait", "0", "--", "true")).code).toBe(75);
    expect(JSON.parse((await run("ls", "--json")).out)).toMatchObject({ locks: [{ key: "nightly" }] });
    const inspected = await run("inspect", "nightly", "--json");
    expect(JSON.parse(inspected.out)).toMatchObject({
      key: "nightly",
      holders: [{ fencingToken, heldMs: expect.any(Number) as number }],
    });
    const broken = await run("release", "--force", "nightly", "--fence", fencingToken, "--reason", "test");
    expect(broken.code).toBe(0);
    expect((await holder.ended).code).not.toBe(0);
    expect((await run("run", "-k", "nightly", "--wait", "0", "--", "true")).code).toBe(0);
  });

  test("serves the lock service, which keeps its locks in the engine", async () => {
    const service = cli.start(["serve", "--port", "0"], { env: { HOLDFAST_URL: url() } });
    await waitUntil(() => service.out().endsWith("\n"), "it listens");
    const [byService, direct] = await Promise.all([connect(service.out().trim()), connect(url())]);
    const [here, there] = [createLocks(byService), createLocks(direct)];
    const lease = await here.acquire("served", { owner: "client" });
    expect((await there.inspect("served")).holders).toMatchObject([
      { owner: "client", fencingToken: lease.fencingToken },
    ]);
    const waiting = there.acquire("served");
    await lease.release();
    await (await waiting).release();
    await Promise.all([here.close(), there.close()]);
    service.kill("SIGTERM");
    expect((await service.ended).code).toBe(0);
  });
}

/**
 * Each engine has errors of its own, none of which may have the password.
 * @param unreachable a URL with the password "secret", at which no server listens
 */
export function testUnreachable(cli: CommandLine, unreachable: () => string | Promise<string>): void {
  test("doctor names an unreachable server, without the password of the URL", async () => {
    const env = { HOLDFAST_URL: await unreachable() };
    const { code, err } = await cli.run(["doctor"], { env });
    expect(code).toBe(69);
    expect(err).toContain("ECONNREFUSED");
    expect(err).not.toContain("secret");
  });
}

/** A report of `holdfast doctor --json`. */
export interface Diagnosis {
  readonly topology: string;
  readonly nodes: readonly string[];
  readonly findings: readonly (Readonly<Record<"id" | "level" | "node" | "observed" | "fix", string>> & {
    readonly command?: string;
  })[];
  readonly probe: { readonly acquire: number } | null;
}

/** The report of `holdfast doctor` for a URL. */
export async function diagnose(cli: CommandLine, url: string, ...args: string[]): Promise<Diagnosis> {
  const { out, err } = await cli.run(["doctor", "--json", ...args], { env: { HOLDFAST_URL: url } });
  expect(err).toBe("");
  return JSON.parse(out) as Diagnosis;
}
