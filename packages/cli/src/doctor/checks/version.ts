import { numberOf, type Facts } from "../facts.ts";
import { found, type Check, type Found } from "./check.ts";

interface Line {
  readonly line: string;
  readonly fixedIn: number;
}

/** CVE-2025-49844: a script can run code in the server. First versions without it, by release line. */
const redisLines: readonly Line[] = [
  { line: "6.2", fixedIn: 20 },
  { line: "7.2", fixedIn: 11 },
  { line: "7.4", fixedIn: 6 },
  { line: "8.0", fixedIn: 4 },
  { line: "8.2", fixedIn: 2 },
];
const valkeyLines: readonly Line[] = [
  { line: "7.2", fixedIn: 11 },
  { line: "8.0", fixedIn: 6 },
  { line: "8.1", fixedIn: 4 },
];

interface Version {
  readonly text: string;
  readonly isValkey: boolean;
  /** 7.2.11 is 70211. */
  readonly order: number;
}

const version: Check = (facts) => {
  const one = versionOf(facts);
  return one === undefined ? undefined : [tooOld(one), runsForeignCode(one), attackable(one)];
};

function versionOf({ info }: Facts): Version | undefined {
  const valkey = info.get("valkey_version");
  const text = valkey ?? info.get("redis_version");
  const [major = 0, minor = 0, patch = 0] = (text ?? "").split(".").map(Number);
  return text === undefined
    ? undefined
    : { text, isValkey: valkey !== undefined, order: major * 10_000 + minor * 100 + patch };
}

function tooOld({ text, order }: Version): Found {
  return (
    order < 60_200 &&
    found("danger", "too-old", {
      observed: `version ${text}`,
      danger: "Holdfast's scripts need Redis 6.2 or newer: there are no locks here",
      advice: "a newer server",
    })
  );
}

function runsForeignCode({ text, isValkey, order }: Version): Found {
  const lines = isValkey ? valkeyLines : redisLines;
  const newest = lines.at(-1) as Line;
  const line = lines.find((one) => Math.floor(order / 100) === lineOrder(one));
  if (line === undefined ? Math.floor(order / 100) > lineOrder(newest) : order % 100 >= line.fixedIn) {
    return undefined;
  }
  const mended = line === undefined ? "a newer line" : `${line.line}.${line.fixedIn} or newer`;
  return found("risk", "cve-2025-49844", {
    observed: `version ${text}${line === undefined ? ", a line that its makers do not mend" : ""}`,
    danger:
      "who may run scripts, as locks have to, can run code in the server and do anything with every lock",
    advice: `${mended}, or a distribution's own fix; only trusted users may have EVAL`,
  });
}

function lineOrder({ line }: Line): number {
  const [major = 0, minor = 0] = line.split(".").map(Number);
  return major * 100 + minor;
}

function attackable({ text, isValkey, order }: Version): Found {
  return (
    !isValkey &&
    order >= 70_200 &&
    order < 80_603 &&
    found("risk", "cve-2026-23479", {
      observed: `version ${text}`,
      danger:
        "a known fault of 7.2.0 to 8.6.2 lets who is logged in attack the server, and with it every lock",
      advice: "8.6.3 or newer, or your distribution's own fix",
    })
  );
}

const flavour: Check = (facts) => {
  const other = ["dragonfly_version", "keydb_version", "garnet_version"].find((name) => facts.info.has(name));
  const mode = facts.info.get("redis_mode");
  const isSmall = numberOf(facts, "uptime_in_seconds") === undefined;
  return [
    other !== undefined &&
      found("risk", "other-server", {
        observed: `it is ${other.replace("_version", "")} ${facts.info.get(other)}`,
        danger:
          "it has to run scripts atomically and keep time as Redis does; nobody has tried all of that here",
        advice: "Redis 6.2 or newer, or Valkey",
      }),
    (mode === "sentinel" || (isSmall && facts.refused.size === 0)) &&
      found("danger", "not-a-server", {
        observed: mode === "sentinel" ? "it is a sentinel" : "it does not tell what it is; perhaps a proxy",
        danger: "messages may not pass, and commands of one script may reach different servers",
        advice: "name the server itself (redis+sentinel: for sentinels)",
      }),
  ];
};

export const versionChecks: readonly Check[] = [version, flavour];
