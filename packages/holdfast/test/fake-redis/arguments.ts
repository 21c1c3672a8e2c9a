import type { Redis } from "ioredis";

import type { LockKeys } from "../../src/drivers/redis/protocol/keys.ts";
import type { Operation } from "./operations.ts";

/** The index of the argument with a grant's fencing token. */
const numberAt: Readonly<Record<string, number>> = {
  extend: 3,
  breakGrant: 0,
  yield: 2,
  raiseFence: 1,
  refill: 3,
};

/** The arguments of an operation, with the references to the present grant or latch resolved. */
export async function argumentsOf(
  redis: Redis,
  keys: LockKeys,
  { name, args }: Operation,
  isQuorum: boolean,
): Promise<readonly string[]> {
  const [K] = keys;
  if (args.includes("present")) {
    const born = (await redis.type(K)) === "hash" ? await redis.hget(K, "born") : null;
    return args.map((arg) => (arg === "present" ? (born ?? "") : arg));
  }
  const at = numberAt[name];
  if (at === undefined || args[at] === "") {
    return args;
  }
  const first = await (isQuorum ? firstOnNode(redis, keys) : firstOnOneServer(redis, keys));
  const number = String(Math.max(name === "refill" ? 1 : -Infinity, first + Number(args[at])));
  return name === "refill"
    ? args
        .with(at, number)
        .with(at + 1, number)
        .with(at + 2, soon())
    : args.with(at, number);
}

/** Server ms. */
function soon(): string {
  return String(Date.now() + 60_000);
}

async function firstOnNode(redis: Redis, [, , , fence = ""]: LockKeys): Promise<number> {
  return (await redis.type(fence)) === "hash" ? Number(await redis.hget(fence, "first")) : 0;
}

/** The newest fencing token among the holders of a shared lock. */
async function firstOnOneServer(redis: Redis, [K, , info]: LockKeys): Promise<number> {
  if ((await redis.type(K)) === "string") {
    return Number((await redis.get(K))?.split(" ")[1]) || 0;
  }
  const fields = (await redis.type(info)) === "hash" ? await redis.hgetall(info) : {};
  const holders = Object.entries(fields).filter(([field]) => field.startsWith("h"));
  return Math.max(0, ...holders.map(([, said]) => Number(said.split(" ")[0])));
}
