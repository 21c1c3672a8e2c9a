import { numberOf, type ServerFacts } from "../facts.ts";
import { finding, type Check, type CheckResult } from "./check.ts";

interface ReleaseLine {
  readonly version: string;
  readonly fixedIn: number;
}

/** CVE-2025-49844: a script can run code in the server. The first fixed version of each release line. */
const redisLines: readonly ReleaseLine[] = [
  { version: "6.2", fixedIn: 20 },
  { version: "7.2", fixedIn: 11 },
  { version: "7.4", fixedIn: 6 },
  { version: "8.0", fixedIn: 4 },
  { version: "8.2", fixedIn: 2 },
];
const valkeyLines: readonly ReleaseLine[] = [
  { version: "7.2", fixedIn: 11 },
  { version: "8.0", fixedIn: 6 },
  { version: "8.1", fixedIn: 4 },
];

interface Version {
  readonly text: string;
  readonly isValkey: boolean;
  /** 7.2.11 is 70211. */
  readonly order: number;
}

const version: Check = (facts) => {
  const one = versionOf(facts);
  return one === undefined ? undefined : [isTooOld(one), hasCodeExecutionBug(one), isVulnerable(one)];
};

function versionOf({ info }: ServerFacts): Version | undefined {
  const valkey = info.get("valkey_version");
  const text = valkey ?? info.get("redis_version");
  const [major = 0, minor = 0, patch = 0] = (text ?? "").split(".").map(Number);
  return text === undefined
    ? undefined
    : { text, isValkey: valkey !== undefined, order: major * 10_000 + minor * 100 + patch };
}

function isTooOld({ text, order }: Version): CheckResult {
  return (
    order < 60_200 &&
    finding("critical", "too-old", {
      observed: `version ${text}`,
      impact: "Holdfast's scripts need Redis 6.2 or newer, so this server cannot grant locks",
      fix: "upgrade the server",
    })
  );
}

function hasCodeExecutionBug({ text, isValkey, order }: Version): CheckResult {
  const lines = isValkey ? valkeyLines : redisLines;
  const newest = lines.at(-1) as ReleaseLine;
  const line = lines.find((one) => Math.floor(order / 100) === lineOrder(one));
  if (line === undefined ? Math.floor(order / 100) > lineOrder(newest) : order % 100 >= line.fixedIn) {
    return undefined;
  }
  const fixedVersion = line === undefined ? "a newer line" : `${line.version}.${line.fixedIn} or newer`;
  return finding("risk", "cve-2025-49844", {
    observed: `version ${text}${line === undefined ? ", an unsupported version (no security fixes)" : ""}`,
    impact:
      "a client that may run scripts, which locks need, can run code in the server and change every lock",
    fix: `${fixedVersion}, or a distribution's own fix; only trusted users may have EVAL`,
  });
}

function lineOrder({ version }: ReleaseLine): number {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major * 100 + minor;
}

function isVulnerable({ text, isValkey, order }: Version): CheckResult {
  return (
    !isValkey &&
    order >= 70_200 &&
    order < 80_603 &&
    finding("risk", "cve-2026-23479", {
      observed: `version ${text}`,
      impact:
        "a known vulnerability of 7.2.0 to 8.6.2 lets an authenticated client attack the server and every lock",
      fix: "8.6.3 or newer, or your distribution's own fix",
    })
  );
}

const flavour: Check = (facts) => {
  const other = ["dragonfly_version", "keydb_version", "garnet_version"].find((name) => facts.info.has(name));
  const mode = facts.info.get("redis_mode");
  const isSmall = numberOf(facts, "uptime_in_seconds") === undefined;
  return [
    other !== undefined &&
      finding("risk", "other-server", {
        observed: `it is ${other.replace("_version", "")} ${facts.info.get(other)}`,
        impact:
          "this server must run scripts atomically and expire keys like Redis; Holdfast is not tested on it",
        fix: "use Redis 6.2 or newer, or Valkey",
      }),
    (mode === "sentinel" || (isSmall && facts.refused.size === 0)) &&
      finding("critical", "not-a-server", {
        observed:
          mode === "sentinel" ? "it is a sentinel" : "the server does not state its kind, and may be a proxy",
        impact: "notifications may be lost, and commands may reach different servers",
        fix: "use the address of the server itself (redis+sentinel: for sentinels)",
      }),
  ];
};

export const versionChecks: readonly Check[] = [version, flavour];
