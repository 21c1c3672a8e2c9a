import type { Connection } from "holdfast/redis";
import { expect, test } from "vitest";

import { said } from "../../../support/said.ts";
import { follow, Lab, refusal, type Process } from "./lab.ts";
import { Stage } from "./quorum-stage.ts";

// What the release of a lease answers that is passed on to the next caller of the process in the same step.

const withoutHandover = { locks: { handover: { max: 0, maxMs: 0 } } } as const;
const ttlMs = 60_000;

test("it was ours where the answer of a node was lost, and the next bid asks that node again", async () => {
  const lab = new Lab(3);
  for (const node of lab.nodes) {
    node.failPublish(true); // who hears nothing begins anew, while it has too few votes
  }
  // So long that it is the next bid that finds out, and not a release by itself.
  const { locks, faults } = await lab.warm({ ...withoutHandover, redlock: { commandTimeoutMs: 10_000 } });
  faults[1]?.refuse(refusal());
  const held = await lab.within(100, locks.acquire("k", { ttlMs }));
  const next = follow(locks.acquire("k", { ttlMs, waitMs: 30_000 }));
  await lab.clock.advance(20);
  const bids = new Set<unknown>();
  faults[0]?.dropReply(({ args }) => {
    const [name, , , token] = said(args);
    if (name === "passOn") {
      bids.add(token);
    }
    if (bids.size > 1) {
      faults[1]?.refuse(null);
    }
    return name === "passOn" && bids.size === 1;
  }, "reset");
  expect(await lab.within(1_900, held.release())).toBe(true);
  expect(bids.size).toBe(2);
  await lab.clock.advance(2_000);
  expect(next.value?.remainingMs()).toBeGreaterThan(0);
});

test("it was ours where the client library asked a node once more by itself", async () => {
  const stage = new Stage();
  let asked = 0;
  const { locks } = await stage.side({}, (connection) =>
    resending(connection, (args) => said(args)[0] === "passOn" && (asked += 1) > 0),
  );
  const held = await stage.within(10, locks.acquire("k", { ttlMs }));
  for (let caller = 0; caller < 20; caller += 1) {
    void locks.acquire("k", { ttlMs, renew: false }).catch(() => undefined); // none takes it over in memory
  }
  await stage.pass(10);
  expect(await stage.within(100, held.release())).toBe(true);
  expect(asked).toBeGreaterThan(1);
});

test("it was ours where a node grants it late, before it is asked to pass it on", async () => {
  const stage = new Stage();
  const first = await stage.side();
  let arrive = (): void => undefined;
  const arrives = new Promise<void>((resolve) => (arrive = resolve));
  const { locks } = await stage.side({}, (connection) =>
    delaying(connection, (args) => connection.name === "n2" && said(args)[0] === "passOn", arrives),
  );
  first.faults[0]?.refuse(refusal());
  first.faults[1]?.refuse(refusal());
  const enough = new AbortController();
  const rival = follow(first.locks.acquire("k", { ttlMs, signal: enough.signal }));
  await stage.pass(20);
  const held = await stage.within(20, locks.acquire("k", { ttlMs }));
  const next = follow(locks.acquire("k", { ttlMs, renew: false })); // is not handed it in memory
  await stage.pass(10);
  stage.servers[1]?.del("lock:k"); // so it is node 2 that makes a majority
  const released = held.release();
  enough.abort(); // the rival leaves node 2, which grants it while it is given up
  await stage.pass(10);
  arrive();
  expect(await stage.within(1_000, released)).toBe(true);
  expect([rival.error, next.value?.remainingMs()]).toEqual([enough.signal.reason, expect.any(Number)]);
});

test("it was ours where who comes next gave up before any node was reached", async () => {
  const lab = new Lab(3);
  expect(await releasedBehindWhoGaveUp(lab, await lab.warm(withoutHandover), [])).toBe(true);
});

test("it was ours where nodes are asked to pass it on behind its release, whose answers were lost", async () => {
  const stage = new Stage();
  let begins = false;
  const { locks } = await stage.side({ commandTimeoutMs: 8_000 }, (connection) =>
    releasingFirst(connection, () => begins),
  );
  const held = await stage.within(10, locks.acquire("k", { ttlMs }));
  const next = follow(locks.acquire("k", { ttlMs, renew: false })); // is not handed it in memory
  await stage.pass(10);
  begins = true;
  expect(await stage.within(7_900, held.release())).toBe(true);
  await stage.pass(1_000);
  expect(next.value?.remainingMs()).toBeGreaterThan(0);
});

test("it was lost where most nodes had forgotten it, and who comes next gave up", async () => {
  const lab = new Lab(3);
  expect(await releasedBehindWhoGaveUp(lab, await lab.warm(withoutHandover), [0, 1])).toBe(false);
});

async function releasedBehindWhoGaveUp(
  lab: Lab,
  { locks, faults }: Process,
  forgetful: readonly number[],
): Promise<boolean> {
  const held = await lab.within(20, locks.acquire("k", { ttlMs }));
  const enough = new AbortController();
  const next = follow(locks.acquire("k", { ttlMs, signal: enough.signal }));
  await lab.clock.advance(20);
  for (const each of faults) {
    each.refuse(new Error("LOADING Redis is loading the dataset in memory"));
  }
  const released = held.release();
  await lab.clock.advance(20);
  enough.abort(new Error("enough"));
  for (const index of forgetful) {
    lab.nodes[index]?.flushAll();
  }
  for (const each of faults) {
    each.refuse(null);
  }
  const answer = await lab.within(1_900, released);
  expect(next.error).toBeDefined();
  return answer;
}

/** Some calls reach the server when that is settled. */
function delaying(
  connection: Connection,
  isLate: (args: readonly string[]) => boolean,
  arrives: Promise<void>,
): Connection {
  return {
    keyPrefix: connection.keyPrefix,
    name: connection.name,
    run: async (script, keys, args) => {
      if (isLate(args)) {
        await arrives;
      }
      return connection.run(script, keys, args);
    },
    command: (name, args) => connection.command(name, args),
    subscribe: (channel, kind, listener) => connection.subscribe(channel, kind, listener),
    onDown: (listener) => connection.onDown(listener),
  };
}

/** Refuses to pass anything on until a release has come, whose answer is lost, and whose repeat is refused until then. */
function releasingFirst(connection: Connection, begins: () => boolean): Connection {
  const loading = new Error("LOADING Redis is loading the dataset in memory");
  let released = 0;
  let passedOn = 0;
  return {
    keyPrefix: connection.keyPrefix,
    name: connection.name,
    run: async (script, keys, args) => {
      const name = begins() ? said(args)[0] : undefined;
      if ((name === "passOn" && released === 0) || (name === "release" && released > 0 && passedOn === 0)) {
        throw loading;
      }
      const answer = await connection.run(script, keys, args);
      passedOn += name === "passOn" ? 1 : 0;
      released += name === "release" ? 1 : 0;
      if (name === "release" && released === 1) {
        throw new Error("read ECONNRESET");
      }
      return answer;
    },
    command: (name, args) => connection.command(name, args),
    subscribe: (channel, kind, listener) => connection.subscribe(channel, kind, listener),
    onDown: (listener) => connection.onDown(listener),
  };
}

/** As of a client that lost its connection after the server had done what it was asked, and asks again. */
function resending(connection: Connection, isSentAgain: (args: readonly string[]) => boolean): Connection {
  const listeners = new Set<() => void>();
  return {
    keyPrefix: connection.keyPrefix,
    name: connection.name,
    run: async (script, keys, args) => {
      if (isSentAgain(args)) {
        await connection.run(script, keys, args);
        for (const listener of listeners) {
          listener();
        }
      }
      return connection.run(script, keys, args);
    },
    command: (name, args) => connection.command(name, args),
    subscribe: (channel, kind, listener) => connection.subscribe(channel, kind, listener),
    onDown: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
