import type { LockKeys } from "../../src/drivers/redis/protocol/keys.ts";
import type { Step } from "./steps.ts";

/** The commands that change the data of both servers without a script. */
export function changes(
  step: Exclude<Step, { type: "operate" | "mute" | "fill" }>,
  keys: LockKeys = ["", "", "", ""],
  micros: number,
  deadWaiter: (n: number) => string,
): readonly (readonly [name: string, ...args: string[]])[] {
  const [K, queue, , counter = ""] = keys;
  switch (step.type) {
    case "expire":
      return [["PEXPIRE", keys[step.part] as string, "1"]];
    case "limit":
      return [limit(keys[step.part] as string, step.ttlMs)];
    case "delete":
      return [["DEL", keys[step.part] as string]];
    case "spoil":
      return spoil(keys[step.part] as string, step.part === 0);
    case "seize":
      return [["SET", K, "another library's", ...(step.ttlMs === null ? [] : ["PX", String(step.ttlMs)])]];
    case "count":
      return [["DEL", counter], count(counter, step, micros)];
    case "crowd":
      return crowd(queue, step, deadWaiter);
    case "flush":
      return [["FLUSHALL"]];
  }
}

function count(
  counter: string,
  { last, aheadMs, isQuorum }: Extract<Step, { type: "count" }>,
  micros: number,
): [string, ...string[]] {
  const number = String(aheadMs > 0 ? micros + aheadMs * 1_000 : last);
  return isQuorum ? ["HSET", counter, "first", number, "last", number] : ["SET", counter, number];
}

function limit(key: string, ttlMs: number | null): [string, ...string[]] {
  return ttlMs === null ? ["PERSIST", key] : ["PEXPIRE", key, String(ttlMs)];
}

/** Gives the key an invalid type. */
function spoil(key: string, isLock: boolean): [string, ...string[]][] {
  return [["DEL", key], isLock ? ["HSET", key, "a", "1"] : ["SET", key, "spoilt"]];
}

/** Many waiters of dead processes, and invalid queue entries. */
function crowd(
  key: string,
  { dead, junk }: { readonly dead: number; readonly junk: boolean },
  deadWaiter: (n: number) => string,
): [string, ...string[]][] {
  const members = [...(junk ? ["junk"] : []), ...Array.from({ length: dead }, (_, n) => deadWaiter(n))];
  return [
    ["DEL", key],
    ...members.map((member, n): [string, ...string[]] => ["ZADD", key, String(n % 5), member]),
  ];
}
