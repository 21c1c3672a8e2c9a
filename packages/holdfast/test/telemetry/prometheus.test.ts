import { createLocks, type Locks } from "holdfast";
import { memory } from "holdfast/memory";
import {
  instrumentHoldfast,
  instruments,
  KeyGroups,
  metricName,
  type InstrumentName,
} from "holdfast/prometheus";
import { redis } from "holdfast/redis";
import { startRedis, type RedisServer } from "@holdfast/test-kit";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";

import { contendedRun, expectedCounts } from "../support/contended-run.ts";
import { onRedis } from "../support/servers.ts";

let server: RedisServer;

/** The value of a series with the name and attributes of OpenTelemetry, as the text of the registry has it. */
function valueIn(text: string, series: string): number | undefined {
  const [name, ...attributes] = series.split(" ") as [InstrumentName, ...string[]];
  const suffix = instruments[name].kind === "histogram" ? "_count" : "";
  const labels = attributes.map((each) => each.replace(/^([\w.]+)=(.*)$/, (_, label: string, value: string) => `${label.replaceAll(".", "_")}="${value}"`)); // prettier-ignore
  const line = text
    .split("\n")
    .find((each) => each.startsWith(`${metricName(name)}${suffix}{`) && labels.every((label) => each.includes(label)) && each.split(",").length === labels.length); // prettier-ignore
  return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(" ")));
}

onRedis("holdfast/prometheus on a real server", () => {
  beforeAll(async () => {
    server = await startRedis();
  });

  afterAll(() => server.stop());

  test("the metrics say what happened, and name no key", async () => {
    const [here, there]: readonly Locks[] = [1, 2].map(() => createLocks(redis(server.client())));
    const registry = new Registry();
    using _instrumentation = instrumentHoldfast({ registry, locks: here, groups: ["orders"] });
    await contendedRun(here as Locks, there as Locks);
    const text = await registry.metrics();
    for (const [series, count] of Object.entries(expectedCounts)) {
      expect([series, valueIn(text, series)]).toEqual([series, count]);
    }
    expect(text).toMatch(/^holdfast_node_up\{server_address="[^"]+"\} 1$/m);
    expect(text).not.toContain("orders:1");
    await Promise.all([here?.close(), there?.close()]);
  });
});

test("known groups start at 0, and the end removes the metrics", async () => {
  const registry = new Registry();
  const end = instrumentHoldfast({ registry, groups: ["orders:"] });
  const text = await registry.metrics();
  for (const line of [
    'holdfast_held{group="orders:",kind="mutex"} 0',
    'holdfast_lost_total{group="orders:",reason="expired"} 0',
    'holdfast_hold_duration_seconds_count{group="orders:",end="released"} 0',
    'holdfast_overrun_duration_seconds_count{group="orders:"} 0',
  ]) {
    expect(text).toContain(line);
  }
  for (const name of Object.keys(instruments) as InstrumentName[]) {
    expect(text).toContain(`# TYPE ${metricName(name)} `);
  }
  end();
  expect(await registry.metrics()).toBe("\n");
  instrumentHoldfast({ registry })();
});

test("leases that end after the end of an instrumentation leave no negative value", async () => {
  const locks = createLocks(memory());
  const early = await locks.acquire("orders:1");
  const registry = new Registry();
  using _instrumentation = instrumentHoldfast({ registry });
  await early.release();
  await locks.withLock("orders:1", () => undefined);
  expect(await registry.metrics()).toContain('holdfast_held{group="orders",kind="mutex"} 0');
  await locks.close();
});

test("the group of a key is its prefix, or the part before its first colon, and other after 200 groups", () => {
  const groups = new KeyGroups(["user:admin"]);
  expect(["user:admin:7", "user:7", "plain", ":x"].map((key) => groups.of(key))).toEqual([
    "user:admin",
    "user",
    "none",
    "none",
  ]);
  const many = Array.from({ length: 250 }, (_, index) => groups.of(`g${index}:k`));
  expect([new Set(many).size, many.at(-1), groups.of("user:8")]).toEqual([198, "other", "user"]);
  expect(new KeyGroups((key) => key.slice(0, 2)).of("abc")).toBe("ab");
});
