import { setTimeout as pause } from "node:timers/promises";

import { startRedis } from "@holdfast/test-kit";

import { connect } from "../clients.ts";
import type { Locks, PermitOptions } from "../library.ts";
import { outcomeOf, notOffered, type Outcome } from "../outcome.ts";
import type { Scenario } from "../scenario.ts";
import { withTimeout } from "../within.ts";

const longTtlMs = 10_000;
const shortTtlMs = 1_000;
const aheadMs = 11_000;
const limit = 1;
const waitMs = 500;
/** The first acquire also opens the connection. */
const connectMs = 10_000;

type Permit = (key: string, options: PermitOptions) => ReturnType<Locks["acquire"]>;

/** One client holds the permit. A second client with a shorter TTL, or with a clock ahead, requests the same permit. */
export const semaphoreClocks: Scenario = {
  withinMs: 20_000,
  run: async (library): Promise<Outcome> => {
    const server = await startRedis();
    const [first, second] = [0, 1].map(() => library.onServer(connect(server.port)).permit);
    if (!first || !second) {
      return notOffered("no semaphore");
    }
    return outcomeOf([...(await withShorterTtl(first, second)), ...(await withClockAhead(first, second))]);
  },
};

async function withShorterTtl(first: Permit, second: Permit): Promise<string[]> {
  const holder = await first("ttl", { limit, ttlMs: longTtlMs, waitMs: connectMs });
  await pause(shortTtlMs + 200);
  const other = await withTimeout(3_000, second("ttl", { limit, ttlMs: shortTtlMs, waitMs }));
  return other.state === "fulfilled" && holder.isHeld()
    ? ["two holders of one permit, because the second requested with a TTL of 1 s and the first with 10 s"]
    : [];
}

async function withClockAhead(first: Permit, second: Permit): Promise<string[]> {
  const holder = await first("clock", { limit, ttlMs: longTtlMs, waitMs });
  const trueNow = Date.now;
  Date.now = () => trueNow() + aheadMs;
  const other = await withTimeout(3_000, second("clock", { limit, ttlMs: longTtlMs, waitMs }));
  Date.now = trueNow;
  return other.state === "fulfilled" && holder.isHeld()
    ? ["two holders of one permit, because the clock of the second was 11 s ahead"]
    : [];
}
