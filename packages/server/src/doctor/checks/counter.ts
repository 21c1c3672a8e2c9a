import type { Redis } from "ioredis";

import { formatDuration } from "../duration.ts";
import { errorMessage } from "../errors.ts";
import type { Finding } from "../finding.ts";
import type { Server } from "../servers.ts";

/** A counter of fencing tokens that the scripts of locks refuse, or that is ahead of the server's time. */
interface Counter {
  readonly key: string;
  /** Its content, at most 40 characters. */
  readonly text: string;
  /** How far it is ahead of the server's time, ms; undefined: it is no number. */
  readonly aheadMs: number | undefined;
  readonly isRefused: boolean;
}

/** A counter that is further ahead than this is no longer the normal one of a busy server. */
const normalLeadMs = 1_000;
/** The scripts accept a counter that is ahead by up to a day. */
const dayMicros = 86_400_000_000;
/** Numbers are exact up to 2^53. Above this one too few would be left. */
const maxNumber = 9_000_000_000_000_000;

/** The server's time in microseconds, and the content of a counter. */
const read = `
local time = redis.call('TIME')
local text = redis.pcall('GET', KEYS[1])
return { time[1] * 1000000 + time[2], type(text) == 'table' and text.err or text }`;

/** Accepts a counter that has not changed: with a leading 0 the scripts of locks accept any lead. */
const accept = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], '0' .. ARGV[1])
return 1`;

/** Finds counters that are ahead of the server's time. On the servers of a cluster each slot has a counter. */
export async function checkCounters({ name, client }: Server, isCluster: boolean): Promise<Finding[]> {
  const counters = await aheadOn(client, isCluster).catch((): Counter[] => []);
  return counters.map((counter) => ({
    ...(counter.isRefused ? refused(counter) : ahead(counter)),
    node: name,
  }));
}

/**
 * Accepts each counter that is more than a day ahead of the time: the locks then continue from its number.
 * @returns the keys of the counters
 * @throws {Error} the server refuses the change
 */
export async function acceptCounters({ name, client }: Server, isCluster: boolean): Promise<string[]> {
  const accepted: string[] = [];
  for (const counter of await aheadOn(client, isCluster)) {
    const { key, text } = counter;
    const isAccepted =
      counter.isRefused &&
      isAcceptable(counter) &&
      (await client.eval(accept, 1, key, text).catch((error: unknown) => {
        throw new Error(`${key} on ${name}: ${errorMessage(error)}`);
      })) === 1;
    if (isAccepted) {
      accepted.push(key);
    }
  }
  return accepted;
}

function isAcceptable({ text, aheadMs }: Counter): boolean {
  return aheadMs !== undefined && Number(text) <= maxNumber;
}

function refused(counter: Counter): Omit<Finding, "node"> {
  const { key, text, aheadMs } = counter;
  return {
    level: "critical",
    id: "counter-refused",
    observed:
      aheadMs === undefined
        ? `the counter ${key} has no number: ${text}`
        : `the counter ${key} is ${formatDuration(aheadMs)} ahead of the server's clock`,
    impact: "no lock is granted, because the counter may be damaged. Renewals continue",
    ...(isAcceptable(counter)
      ? {
          fix:
            "correct the clock. If it was ahead, accept the counter: fencing tokens continue above all earlier ones. Until the time has reached the " +
            "counter, no lease is handed over in memory, and after a loss of the counter tokens fall",
          command: "holdfast doctor --accept-counter",
        }
      : {
          fix: "remove the counter. Fencing tokens begin at the time again, so a resource that has seen larger ones refuses new leases",
          command: `DEL ${key}`,
        }),
  };
}

function ahead({ key, aheadMs = 0 }: Counter): Omit<Finding, "node"> {
  return {
    level: "perf",
    id: "counter-ahead",
    observed: `the counter ${key} is ${formatDuration(aheadMs)} ahead of the server's clock`,
    impact: "no lease is handed over in memory, and after a loss of the counter fencing tokens fall",
    fix: "keep the counter, which the time will reach; let chrony or ntpd correct the server's clock",
  };
}

async function aheadOn(client: Redis, isCluster: boolean): Promise<Counter[]> {
  const keys = isCluster ? await counterKeys(client) : ["holdfast:fence"];
  const counters: Counter[] = [];
  for (const key of keys) {
    const [now, text] = (await client.eval(read, 1, key)) as [number, string | null];
    const aheadMicros = /^\d+$/.test(text ?? "") ? Number(text) - now : undefined;
    if (text !== null && (aheadMicros === undefined || aheadMicros > normalLeadMs * 1_000)) {
      const isFar = aheadMicros === undefined || aheadMicros > dayMicros;
      counters.push({
        key,
        text: text.slice(0, 40),
        aheadMs: aheadMicros === undefined ? undefined : aheadMicros / 1_000,
        isRefused: isFar && !/^0\d/.test(text),
      });
    }
  }
  return counters;
}

/** The counters of the slots of one server. */
async function counterKeys(client: Redis): Promise<string[]> {
  const found: string[] = [];
  let cursor = "0";
  do {
    const [next, keys] = await client.scan(cursor, "MATCH", "holdfast:fence:{*}", "COUNT", 10_000);
    found.push(...keys);
    cursor = next;
  } while (cursor !== "0");
  return found;
}
