import type { Connection } from "holdfast/redis";
import { expect, test } from "vitest";

import { altered } from "../../../support/altered.ts";
import { QuorumFixture, type QuorumClient } from "../../../support/quorum-fixture.ts";

// A grant by notification counts at once only if the start of its TTL is known.

const slowMs = 20;

test("a pushed grant counts without another request", async () => {
  const fixture = new QuorumFixture();
  const [holder, waiter] = [await fixture.client(), await fixture.client()];
  expect(await isGrantedAtOnce(fixture, holder, waiter)).toBe(true);
});

test("a pushed grant of another run of the node is confirmed first", async () => {
  const fixture = new QuorumFixture();
  const [holder, waiter] = [await fixture.client(), await fixture.client({}, ofAnotherRun)];
  expect(await isGrantedAtOnce(fixture, holder, waiter)).toBe(false);
});

test("a pushed grant after a connection loss is confirmed first, until the node reports its time again", async () => {
  const fixture = new QuorumFixture();
  const downs: (() => void)[] = [];
  const holder = await fixture.client();
  const waiter = await fixture.client({}, (connection) => withDowns(connection, downs));
  const isGranted = await isGrantedAtOnce(fixture, holder, waiter, () => {
    for (const down of downs) {
      down();
    }
  });
  expect(isGranted).toBe(false);
});

/**
 * Whether the waiter has the lock before any request could have a reply. The waiter soon has the lock in any
 * case.
 */
async function isGrantedAtOnce(
  fixture: QuorumFixture,
  holder: QuorumClient,
  waiter: QuorumClient,
  before: () => void = () => undefined,
): Promise<boolean> {
  const held = await fixture.settleWithin(10, holder.locks.acquire("k"));
  let isGranted = false;
  const acquired = waiter.locks.acquire("k").then((lease) => {
    isGranted = true;
    return lease;
  });
  await fixture.advance(10);
  for (const each of waiter.faults) {
    each.delay({ requestMs: slowMs, messageMs: 0 });
  }
  before();
  await fixture.settleWithin(slowMs / 4, held.release());
  const wasGranted = isGranted;
  await fixture.settleWithin(1_000, acquired);
  return wasGranted;
}

/** Its grants appear to come from another run of the node. */
function ofAnotherRun(connection: Connection): Connection {
  return altered(connection, {
    subscribe: (channel, kind, listener) =>
      connection.subscribe(channel, kind, {
        connected: () => listener.connected(),
        disconnected: () => listener.disconnected(),
        message: (text) => {
          const fields = text.split(" ");
          fields[6] &&= "0".repeat(40);
          listener.message(fields.join(" "));
        },
      }),
  });
}

/** @param downs callbacks that report a lost connection, which is restored at once */
function withDowns(connection: Connection, downs: (() => void)[]): Connection {
  return altered(connection, {
    onDown: (listener) => {
      downs.push(listener);
      return connection.onDown(listener);
    },
  });
}
