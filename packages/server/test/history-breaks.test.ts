import { createLocks, type Locks } from "holdfast";
import { memory } from "holdfast/memory";
import { redis } from "holdfast/redis";
import { startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";
import { afterAll, beforeAll, expect, test } from "vitest";

import { AuditReader } from "../src/observation/audit-reader.ts";
import { HoldHistory } from "../src/observation/history.ts";
import { sendRequest, startInstance, type ServiceInstance } from "./support/service.ts";

interface ShownHold {
  readonly until: number | null;
  readonly end?: string;
  readonly break?: { readonly principal: string; readonly reason: string };
}

const audit = "holdfast:audit:lock:";
const reason = "it hangs";

let server: RedisServer;
let services: readonly ServiceInstance[];
let worker: Locks;

beforeAll(async () => {
  server = await startRedis();
  const env = { HOLDFAST_URL: `redis://127.0.0.1:${server.port}` };
  services = await Promise.all([startInstance(env), startInstance(env)]);
  worker = createLocks(redis(server.client()), { owner: "worker" });
});

afterAll(async () => {
  await worker.close();
  await Promise.all(services.map((service) => service.kill("SIGKILL")));
  await server.stop();
});

/** The reply of the first instance. */
async function history(query = ""): Promise<{ lostLastHour: number; holds: readonly ShownHold[] }> {
  const { body } = await sendRequest(services[0]?.url ?? "", "GET", `/v1/history${query}`);
  return body as { lostLastHour: number; holds: readonly ShownHold[] };
}

async function newest(key: string): Promise<ShownHold | undefined> {
  return (await history(`?key=${key}`)).holds[0];
}

/** Resolves when the first instance has seen the hold. */
async function holds(key: string, options: { ttlMs?: number } = {}): ReturnType<Locks["acquire"]> {
  const lease = await worker.acquire(key, options);
  await waitUntil(async () => (await newest(key)) !== undefined, `${key} is seen`);
  return lease;
}

async function ends(key: string): Promise<ShownHold | undefined> {
  await waitUntil(async () => typeof (await newest(key))?.until === "number", `${key} has ended`);
  return newest(key);
}

test("a break by another instance or by a program is the end of its hold, and other ends stay", async () => {
  await history();
  const keys = ["instance", "program", "released", "expired"];
  const leases = await Promise.all(keys.map((key) => holds(key, key === "expired" ? { ttlMs: 1_500 } : {})));
  leases[3]?.orphan();
  const [instance, program, released] = leases.map((lease) => lease.fencingToken);
  const seen = { key: "instance", fencingToken: String(instance), reason, by: "ada" };
  expect((await sendRequest(services[1]?.url ?? "", "POST", "/v1/lock/break", seen)).status).toBe(200);
  await worker.admin.breakLock("program", { fencingToken: program ?? 0n, reason, by: "job" });
  await leases[2]?.release();

  for (const [key, principal] of [
    ["instance", "ada"],
    ["program", "job"],
  ] as const) {
    // prettier-ignore
    await waitUntil(async () => (await newest(key))?.end === "broken", `${key} is broken`);
    expect((await newest(key))?.break).toEqual({ principal, reason });
  }
  expect(await ends("released")).toMatchObject({ end: "released", fencingToken: String(released) });
  expect((await ends("expired"))?.end).toMatch(/expired|unknown/);
  const ended = (await history()).holds.filter(({ end }) => end === "broken");
  expect(new Set(ended.map(({ break: by }) => by?.principal))).toEqual(new Set(["ada", "job"]));
});

test("an audit that fails is read again, and a trimmed one changes nothing", async () => {
  const client = server.client();
  const [failing, trimmed] = await Promise.all([holds("failing"), holds("trimmed")]);
  await worker.admin.breakLock("failing", { fencingToken: failing.fencingToken, reason, by: "ada" });
  await client.rename(audit, "hidden");
  await client.set(audit, "no sorted set");
  expect(await ends("failing")).toMatchObject({ end: "released" });
  await client.rename("hidden", audit);
  await waitUntil(async () => (await newest("failing"))?.end === "broken", "the audit is read");

  await worker.admin.breakLock("trimmed", { fencingToken: trimmed.fencingToken, reason });
  await client.del(audit);
  expect(await ends("trimmed")).toMatchObject({ end: "released" });
  expect(await newest("failing")).toMatchObject({ end: "broken", break: { principal: "ada", reason } });
});

test("the audit is read once for all requests after an end, and never again if the engine keeps none", async () => {
  const locks = createLocks(memory());
  const { fencingToken } = await locks.acquire("k");
  const found: number[] = [];
  let during = (): void => undefined;
  const reader = new AuditReader({ audit: (options) => (during(), locks.admin.audit(options)) }, (records) =>
    found.push(records.length),
  );
  await reader.read();
  expect(found).toEqual([]);
  await locks.admin.breakLock("k", { fencingToken, reason });
  reader.holdEnded();
  during = () => reader.holdEnded();
  await Promise.all([reader.read(), reader.read(), reader.read()]);
  expect(found).toEqual([1]);
  during = () => undefined;
  await reader.read(); // the record of the second end may be newer than the first read
  await reader.read();
  expect(found).toEqual([1, 1]);
  await locks.close();

  const without = createLocks(Object.assign(memory(), { audit: undefined }));
  let asked = 0;
  const none = new AuditReader({ audit: () => ((asked += 1), without.admin.audit()) }, () =>
    expect.unreachable(),
  );
  for (let ends = 0; ends < 2; ends += 1) {
    none.holdEnded();
    await none.read();
  }
  expect(asked).toBe(1);
  await without.close();
});

test("a break that becomes known after the end of its hold is the end", () => {
  const history = new HoldHistory();
  const [key, owner, now] = ["order:1", "api", Date.now()];
  const hold = { key, owner, fencingToken: "7", since: now - 100, until: now };
  const lost = (): number => history.lostInLastHour(Date.now(), () => true);
  history.add({ ...hold, fencingToken: "6", end: "released" });
  history.add({ ...hold, end: "expired" });
  history.add({ ...hold, fencingToken: "8", end: "expired" });
  expect(lost()).toBe(2);
  const others = [{ key, fencingToken: 9n }, { key: "order:2", fencingToken: 7n }]; // prettier-ignore
  expect(others.map((grant) => history.wasBroken(grant))).toEqual([false, false]);
  expect(history.wasBroken({ key, fencingToken: 7n })).toBe(true);
  expect(history.of(key).map(({ end }) => end)).toEqual(["expired", "broken", "released"]);
  expect(lost()).toBe(1);
  const record = { id: "1", at: now, action: "break", by: "ada", key, reason, result: "broken" } as const;
  history.correct([8n, 9n].map((fencingToken) => ({ ...record, fencingToken })));
  expect(history.of(key).map((each) => each.break?.principal)).toEqual(["ada", undefined, undefined]);
  expect(lost()).toBe(0);
});
