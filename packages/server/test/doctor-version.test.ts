import { expect, test } from "vitest";

import { runChecks } from "../src/doctor/checks/check.ts";
import { versionChecks } from "../src/doctor/checks/version.ts";
import type { ServerFacts, Deployment } from "../src/doctor/facts.ts";

/** The findings on a server with this `INFO`. */
function found(info: Record<string, string>): Record<string, string> {
  const facts: ServerFacts = {
    node: "n",
    host: "h",
    info: new Map(Object.entries({ uptime_in_seconds: "9", ...info })),
    config: new Map(),
    user: null,
    clock: null,
    refused: new Map(),
  };
  return Object.fromEntries(
    runChecks(versionChecks, facts, {} as Deployment).map(({ id, level }) => [id, level]),
  );
}

const [code, attack] = ["cve-2025-49844", "cve-2026-23479"];

test.each([
  ["6.0.16", ["too-old", code]],
  ["6.2.19", [code]],
  ["6.2.20", []],
  ["7.0.15", [code]],
  ["7.2.10", [code, attack]],
  ["7.2.11", [attack]],
  ["7.4.5", [code, attack]],
  ["8.0.4", [attack]],
  ["8.2.1", [code, attack]],
  ["8.6.2", [attack]],
  ["8.6.3", []],
  ["9.0.0", []],
])("of Redis %s is found: %s", (version, ids) => {
  expect(Object.keys(found({ redis_version: version }))).toEqual(ids);
});

test.each([
  ["7.2.10", [code]],
  ["8.0.6", []],
  ["8.1.3", [code]],
  ["8.1.4", []],
  ["9.0.0", []],
])("of Valkey %s, which calls itself Redis 7.2.4 too, is found: %s", (version, ids) => {
  expect(Object.keys(found({ redis_version: "7.2.4", valkey_version: version }))).toEqual(ids);
});

test("a version that is too old is critical, and a vulnerable one is a risk", () => {
  expect(found({ redis_version: "6.0.16" })).toEqual({ "too-old": "critical", [code]: "risk" });
  expect(found({ redis_version: "8.6.2" })).toEqual({ [attack]: "risk" });
});

test("other servers and sentinels are reported", () => {
  expect(found({ dragonfly_version: "df-1.30" })).toEqual({ "other-server": "risk" });
  expect(found({ redis_version: "8.6.3", redis_mode: "sentinel" })).toEqual({ "not-a-server": "critical" });
});
