import { createLocks } from "holdfast";
import { connect } from "holdfast/connect";
import { waitUntil } from "@holdfast/test-kit";
import { afterAll, beforeAll, expect, test } from "vitest";

import {
  onPostgres,
  startPostgres,
  type PostgresServer,
} from "../../holdfast/test/support/postgres-server.ts";
import { onPgBouncer, startPgBouncer } from "../../holdfast/test/support/pgbouncer-server.ts";
import { commandLine, type ExitResult, type RunningProcess } from "./support/cli.ts";

onPostgres("holdfast, with the URL of PostgreSQL,", () => {
  const cli = commandLine();
  let server: PostgresServer;
  let env: { readonly HOLDFAST_URL: string };

  beforeAll(async () => {
    server = await startPostgres();
    env = { HOLDFAST_URL: server.url };
  });

  afterAll(() => server.stop());

  const run = (...args: string[]): Promise<ExitResult> => cli.run(args, { env });

  async function holding(key: string): Promise<RunningProcess> {
    const command = ["sh", "-c", "echo $HOLDFAST_FENCING_TOKEN; exec sleep 60"];
    const holder = cli.start(["run", "-k", key, "--", ...command], { env });
    await waitUntil(() => holder.out() !== "", "the command runs");
    return holder;
  }

  test("runs a command under a lock, shows the lock, and breaks it", async () => {
    const holder = await holding("nightly");
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

  test("exits with 77 if the server refuses the user", async () => {
    const refused = new URL(server.url);
    refused.username = "nobody";
    const command = ["run", "-k", "nightly", "--wait", "0", "--", "true"];
    expect((await cli.run(command, { env: { HOLDFAST_URL: refused.href } })).code).toBe(77);
  });

  test("serves the lock service, which keeps its locks in the database", async () => {
    const service = cli.start(["serve", "--port", "0"], { env });
    await waitUntil(() => service.out().endsWith("\n"), "it listens");
    const [byService, direct] = await Promise.all([connect(service.out().trim()), connect(server.url)]);
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

  test("doctor finds what puts grants at risk, and times a lock", async () => {
    const found = JSON.parse((await run("doctor", "--json")).out) as {
      topology: string;
      findings: { id: string; level: string }[];
      probe: { acquire: number } | null;
    };
    expect(found.topology).toBe("postgres");
    expect(found.findings).toMatchObject([
      { id: "not-durable", level: "critical" },
      { id: "idle-in-transaction", level: "info" },
    ]);
    expect(found.probe?.acquire).toBeGreaterThan(0);
    expect((await run("doctor", "--no-probe")).out).toContain("fsync is off");
  });

  test("doctor names an unreachable server, without the password of the URL", async () => {
    const unreachable = { HOLDFAST_URL: "postgres://user:secret@127.0.0.1:1/db" };
    const { code, err } = await cli.run(["doctor"], { env: unreachable });
    expect(code).toBe(69);
    expect(err).toContain("ECONNREFUSED");
    expect(err).not.toContain("secret");
  });
});

onPgBouncer("holdfast doctor, with the URL of a pooler in transaction mode,", () => {
  const cli = commandLine();

  test("finds the pooler, which `mode=advisory` does not work with", async () => {
    const server = await startPostgres();
    const pooler = await startPgBouncer(server, { roundRobin: false });
    const doctor = async (query: string): Promise<ExitResult> =>
      cli.run(["doctor", "--no-probe", "--json"], { env: { HOLDFAST_URL: `${pooler.url}${query}` } });
    const levelOf = ({ out }: ExitResult): string | undefined =>
      (JSON.parse(out) as { findings: { id: string; level: string }[] }).findings.find(
        ({ id }) => id === "transaction-pooler",
      )?.level;
    expect(levelOf(await doctor(""))).toBe("perf");
    expect(levelOf(await doctor("?mode=advisory"))).toBe("critical");
    await pooler.stop();
    await server.stop();
  });
});
