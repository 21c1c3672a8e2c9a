import { createLocks, type Lease, type Locks } from "holdfast";
import { redis, type Connection, type SubscriptionListener } from "holdfast/redis";
import { manualClock, manualRandom, type ManualClock } from "holdfast/testing";
import { beforeEach, describe, expect, test } from "vitest";

import { instantNow } from "../../../../src/runtime/clock.ts";
import { GrantAgeEstimator } from "../../../../src/drivers/redis/server/server-clock.ts";
import type { Script } from "../../../../src/drivers/redis/protocol/script.ts";
import { commandText } from "../../../support/diagnostics-log.ts";

const run = "a".repeat(40);
const otherRun = "b".repeat(40);
const serverMicros = 1_700_000_000_000_000;

let clock: ManualClock;
let brackets: GrantAgeEstimator;

beforeEach(() => {
  clock = manualClock({ wall: 1_000_000 });
  brackets = new GrantAgeEstimator(clock);
});

/** A reply to a request of this moment, with the server's time `micros`. */
function observe(micros: number, runId = run): void {
  brackets.observe(runId, micros, instantNow(clock));
}

function ageOf(runId: string, micros: number): number | undefined {
  return brackets.ageOf(runId, micros, instantNow(clock));
}

describe("a bracket", () => {
  test("dates an event on the server no later than it can have been, less the drift", async () => {
    observe(serverMicros);
    await clock.advance(100);
    // 60 ms later on the server: at least 40 ms ago by the client's clock, and 1 % of 100 ms more for a
    // drifting clock.
    expect(ageOf(run, serverMicros + 60_000)).toBeCloseTo(41);
  });

  test("is necessary", () => {
    expect(ageOf(run, serverMicros)).toBeUndefined();
  });

  test("counts only for the same run of the server", async () => {
    observe(serverMicros);
    await clock.advance(10);
    expect(ageOf(otherRun, serverMicros + 5_000)).toBeUndefined();
    expect(ageOf(run, serverMicros + 5_000)).toBeDefined();
    observe(serverMicros, otherRun);
    expect(ageOf(run, serverMicros + 5_000)).toBeUndefined();
    expect(ageOf(otherRun, serverMicros)).toBeDefined();
  });

  test("that is discarded dates nothing, until there is a new one", async () => {
    observe(serverMicros);
    brackets.discard();
    expect(ageOf(run, serverMicros)).toBeUndefined();
    observe(serverMicros + 1_000);
    expect(ageOf(run, serverMicros + 1_000)).toBe(0);
  });

  test("takes the larger of both clocks' elapsed time: a machine that slept must not gain time", async () => {
    observe(serverMicros);
    await clock.advance(20);
    clock.sleep(180);
    expect(ageOf(run, serverMicros + 150_000)).toBeCloseTo(200 * 1.01 - 150);
    clock.jumpWall(-10_000);
    expect(ageOf(run, serverMicros + 10_000)).toBeCloseTo(20 * 1.01 - 10);
  });

  test("is not believed when it dates a grant after its receipt", async () => {
    observe(serverMicros);
    await clock.advance(100);
    expect(ageOf(run, serverMicros + 101_000)).toBeCloseTo(0);
    expect(ageOf(run, serverMicros + 101_001)).toBeUndefined();
  });

  test("is not believed when it dates a grant more than 250 ms back", async () => {
    observe(serverMicros);
    await clock.advance(1_000);
    expect(ageOf(run, serverMicros + 760_001)).toBeCloseTo(250);
    expect(ageOf(run, serverMicros + 759_999)).toBeUndefined();
  });

  test("is replaced only by a more precise one", async () => {
    observe(serverMicros); // with a reply at once
    await clock.advance(100);
    observe(serverMicros + 150_000); // sent 100 ms later, with a reply after 50 ms: less precise
    expect(ageOf(run, serverMicros + 90_000)).toBeCloseTo(11);
    observe(serverMicros + 90_000); // more precise
    expect(ageOf(run, serverMicros + 90_000)).toBeCloseTo(0);
  });

  test("ages by the drift, so that a fresh one of equal precision replaces it", async () => {
    observe(serverMicros);
    await clock.advance(10_000);
    observe(serverMicros + 10_000_000);
    expect(ageOf(run, serverMicros + 10_000_000)).toBeCloseTo(0);
  });
});

const argumentCounts: Readonly<Record<string, number>> = {
  acquire: 7,
  release: 3,
  extend: 4,
  inspect: 0,
};

/** A server that only holds locks. The test controls its clock and its notifications. */
class HoldingServer implements Connection {
  readonly keyPrefix = "";
  readonly name = "test";
  /** Operations in order of arrival: name and arguments. */
  readonly performed: (readonly string[])[] = [];
  runId = run;
  /** The replies to the next acquires. Without one, the lock is held. */
  readonly answers: unknown[] = [];
  /** Replies wait for this promise. */
  gate: Promise<void> | undefined;
  #listener: SubscriptionListener | undefined;
  #down: (() => void) | undefined;

  #answer(operation: string | undefined): unknown {
    if (operation === "acquire") {
      return this.answers.shift() ?? [0, 5_000, 0, `${"f".repeat(32)}:${"e".repeat(32)}:1`, this.runId];
    }
    if (operation === "inspect") {
      return ["", -2, "", "", [], 0, []];
    }
    return operation === "release" ? [1, 0, ""] : 1;
  }

  command(): Promise<unknown> {
    return Promise.resolve([]);
  }

  async run(script: Script, _keys: readonly string[], args: readonly string[]): Promise<unknown> {
    if (script.name === "handshake") {
      const [, kind, text = ""] = args;
      if (kind !== "n") {
        this.#listener?.message(text);
      }
      return [this.micros(), 1, this.runId, "7.0.0", "master", 100];
    }
    const answers: unknown[] = [this.micros()];
    for (const rest = [...commandText(args)]; rest.length > 0;) {
      const [name = "", ...own] = rest.splice(0, 1 + (argumentCounts[rest[0] ?? ""] ?? 0));
      this.performed.push([name, ...own]);
      answers.push(this.#answer(name));
    }
    await this.gate;
    return answers;
  }

  subscribe(_channel: string, _kind: string, listener: SubscriptionListener): { close(): void } {
    this.#listener = listener;
    listener.connected();
    return { close: () => undefined };
  }

  onDown(listener: () => void): () => void {
    this.#down = listener;
    return () => undefined;
  }

  micros(): number {
    return serverMicros + clock.now() * 1_000;
  }

  operations(name: string): (readonly string[])[] {
    return this.performed.filter(([operation]) => operation === name);
  }

  /** Grants the latest request by notification. */
  push(atMicros: number = this.micros()): string {
    const [, token = ""] = this.operations("acquire").at(-1) ?? [];
    const message = ["grant", token, 7, 9, atMicros, 3_000, this.runId, "lock:k"].join(" ");
    this.#listener?.message(message);
    return token;
  }

  dropSubscription(): void {
    this.#listener?.disconnected();
    this.#listener?.connected();
  }

  dropConnection(): void {
    this.#down?.();
  }
}

/** Waits until promises and the turns of batching have run. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe("a grant by notification", () => {
  let server: HoldingServer;
  let locks: Locks;
  let lease: Promise<Lease>;
  let isGranted: boolean;

  beforeEach(async () => {
    server = new HoldingServer();
    locks = createLocks(redis(server, { clock, random: manualRandom(1) }));
    isGranted = false;
    lease = locks.acquire("k", { ttlMs: 30_000, waitMs: 20_000 });
    lease.then(
      () => (isGranted = true),
      () => undefined, // closed at the end
    );
    await settle();
    return async () => {
      const closing = locks.close();
      await clock.advance(5_000);
      await closing;
    };
  });

  /** Requests the queue entry anew. The reply is a bracket. */
  async function poll(): Promise<void> {
    const before = server.operations("acquire").length;
    for (let turn = 0; turn < 12 && server.operations("acquire").length === before; turn += 1) {
      await clock.advance(500);
      await settle();
    }
    expect(server.operations("acquire").length).toBeGreaterThan(before);
  }

  /** The result of a grant by notification: the client believes the grant, or requests a confirmation. */
  async function push(atMicros?: number): Promise<"believed" | "confirmed"> {
    const performed = server.operations("acquire").length;
    server.push(atMicros);
    await settle();
    const isAsked = server.operations("acquire").length > performed;
    expect([isAsked, isGranted]).toEqual(isAsked ? [true, false] : [false, true]);
    return isAsked ? "confirmed" : "believed";
  }

  test("with a bracket is valid from then, for the claim window", async () => {
    await poll();
    await clock.advance(100);
    expect(await push()).toBe("believed");
    const claim = await lease;
    expect(claim.fencingToken).toBe(7n);
    expect(claim.remainingMs()).toBeLessThan(3_000 - 32);
    expect(claim.remainingMs()).toBeGreaterThan(3_000 - 32 - 10);
  });

  test("that is dated after its receipt is confirmed by a request", async () => {
    await poll();
    expect(await push(server.micros() + 50_000)).toBe("confirmed");
  });

  test("that is more than 250 ms old is confirmed, and then counts from that request", async () => {
    await poll();
    await clock.advance(400);
    const token = server.operations("acquire").at(-1)?.[1];
    server.answers.push([1, 7, 9, token]);
    server.push(server.micros() - 300_000);
    const sentAt = clock.now();
    await settle();
    const confirmed = await lease;
    expect(confirmed.validUntil).toBe(sentAt + 30_000 - 302);
    expect(confirmed.fencingToken).toBe(7n);
  });

  test("of another run of the server is confirmed", async () => {
    await poll();
    server.runId = otherRun;
    expect(await push()).toBe("confirmed");
  });

  const connections = ["dropSubscription", "dropConnection"] as const;

  test.each(connections)("is confirmed after %s, as the bracket was discarded", async (drop) => {
    await poll();
    server.gate = new Promise(() => undefined); // no new bracket
    server[drop]();
    await settle();
    expect(await push()).toBe("confirmed");
  });

  test.each(connections)("is not dated by a reply that was under way at %s", async (drop) => {
    let answer = (): void => undefined;
    server.gate = new Promise((resolve) => (answer = resolve));
    await poll();
    server.gate = new Promise(() => undefined);
    server[drop]();
    answer();
    await settle();
    expect(await push()).toBe("confirmed");
  });
});
