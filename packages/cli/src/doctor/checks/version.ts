import { numberOf, type ServerFacts } from "../facts.ts";
import { finding, type Check, type CheckResult } from "./check.ts";

interface ReleaseLine {
  readonly version: string;
  readonly fixedIn: number;
}

/** CVE-2025-49844: a script can run code in the server. First versions without it, by release line. */
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
      impact: "Holdfast's scripts need Redis 6.2 or newer: there are no locks here",
      fix: "a newer server",
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
  const mended = line === undefined ? "a newer line" : `${line.version}.${line.fixedIn} or newer`;
  return finding("risk", "cve-2025-49844", {
    observed: `version ${text}${line === undefined ? ", a line that its makers do not mend" : ""}`,
    impact:
      "who may run scripts, as locks have to, can run code in the server and do anything with every lock",
    fix: `${mended}, or a distribution's own fix; only trusted users may have EVAL`,
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
        "a known fault of 7.2.0 to 8.6.2 lets who is logged in attack the server, and with it every lock",
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
          "it has to run scripts atomically and keep time as Redis does; nobody has tried all of that here",
        fix: "Redis 6.2 or newer, or Valkey",
      }),
    (mode === "sentinel" || (isSmall && facts.refused.size === 0)) &&
      finding("critical", "not-a-server", {
        observed: mode === "sentinel" ? "it is a sentinel" : "it does not tell what it is; perhaps a proxy",
        impact: "messages may not pass, and commands of one script may reach different servers",
        fix: "name the server itself (redis+sentinel: for sentinels)",
      }),
  ];
};

export const versionChecks: readonly Check[] = [version, flavour];
