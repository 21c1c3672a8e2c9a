import type { Redis } from "ioredis";

import { errorMessage } from "./errors.ts";
import type { DoctorTarget } from "./url.ts";
import { sampleClock, type ClockSample } from "./clock.ts";
import type { Server } from "./servers.ts";

/** The settings of the deployment's clients, for the comparison with the servers. */
export interface Deployment {
  readonly address: DoctorTarget;
  readonly ttlMs: number;
  /** The longest TTL of a grant that a node may have lost, ms. */
  readonly maxTtlMs: number;
  readonly driftFactor: number;
  readonly minReplicas: number;
}

/** The replies of a server about itself. `refused` has the refused commands with the reasons. */
export interface ServerFacts {
  readonly node: string;
  readonly host: string;
  readonly info: ReadonlyMap<string, string>;
  readonly config: ReadonlyMap<string, string>;
  /** The flags and key patterns of the connection's user. */
  readonly user: {
    readonly name: string;
    readonly flags: readonly string[];
    readonly keys: string;
    readonly commands: string;
  } | null;
  readonly clock: ClockSample | null;
  /** The longest run of a script in the slow log, ms; null: none, or the log is not readable. */
  readonly slowestScriptMs?: number | null;
  readonly refused: ReadonlyMap<string, string>;
}

/** Settings that no finding may show, for example `requirepass` and `tls-key-file-pass`. */
const secretSettings = /pass|auth$|secret/i;

/** Reads all facts that a server shows. */
export async function readFacts({ name, host, client }: Server): Promise<ServerFacts> {
  const refused = new Map<string, string>();
  const attempt = async <T>(what: string, query: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await query();
    } catch (error) {
      refused.set(what, errorMessage(error));
      return undefined;
    }
  };
  const info = await attempt("INFO", () => client.info("everything"));
  const config = await attempt("CONFIG GET", () => client.call("CONFIG", "GET", "*"));
  const user = await attempt("ACL", () => userOf(client));
  const slowestScriptMs = await slowestScriptOf(client).catch(() => null);
  const clock = await attempt("TIME", () => sampleClock(client));
  return {
    node: name,
    host,
    info: parseInfo(info ?? ""),
    config: new Map(pairsOf(config).filter(([name]) => !secretSettings.test(name))),
    user: user ?? null,
    clock: clock ?? null,
    slowestScriptMs,
    refused,
  };
}

/** A number of `INFO`; undefined if `INFO` has no such field. */
export function numberOf(facts: ServerFacts, name: string): number | undefined {
  const text = facts.info.get(name);
  const number = text === undefined || text === "" ? Number.NaN : Number(text);
  return Number.isNaN(number) ? undefined : number;
}

/** A setting, by any of the given names. */
export function settingOf({ config }: ServerFacts, ...names: readonly string[]): string | undefined {
  return names.map((name) => config.get(name)).find((value) => value !== undefined);
}

export function parseInfo(text: string): Map<string, string> {
  return new Map(
    text
      .split(/\r?\n/)
      .filter((line) => line.includes(":") && !line.startsWith("#"))
      .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)] as const),
  );
}

/** Reads a reply of names and values, in any version of the protocol. */
export function pairsOf(answer: unknown): [string, string][] {
  if (Array.isArray(answer)) {
    return Array.from({ length: answer.length >> 1 }, (_, index) => [
      String(answer[index * 2]),
      String(answer[index * 2 + 1]),
    ]);
  }
  const entries = answer instanceof Map ? [...answer] : Object.entries(answer ?? {});
  return entries.map(([name, value]) => [String(name), String(value)]);
}

/** An entry of the slow log: id, time, duration in µs, arguments. Only the name of the command is read. */
async function slowestScriptOf(client: Redis): Promise<number | null> {
  const entries = (await client.call("SLOWLOG", "GET", "128")) as [number, number, number, unknown[]][];
  const scripts = entries.filter(([, , , [name]]) => /^(eval|evalsha|fcall)/i.test(String(name)));
  return scripts.length === 0 ? null : Math.max(...scripts.map(([, , micros]) => micros)) / 1_000;
}

async function userOf(client: Redis): Promise<NonNullable<ServerFacts["user"]>> {
  const name = String(await client.call("ACL", "WHOAMI"));
  const fields = new Map(pairsOf(await client.call("ACL", "GETUSER", name)));
  return {
    name,
    flags: (fields.get("flags") ?? "").split(","),
    keys: fields.get("keys") ?? "",
    commands: fields.get("commands") ?? "",
  };
}
