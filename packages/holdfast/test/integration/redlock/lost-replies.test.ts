import { expect, test } from "vitest";
import { rejection, waitUntil } from "@holdfast/test-kit";

import { ExclusionChecker } from "../../support/exclusion-checker.ts";
import {
  holders,
  newKey,
  expectNoResidue,
  onQuorum,
  open,
  queued,
  startNodes,
  startProxies,
  warmUp,
} from "../../support/quorum-servers.ts";
import { cutAll, grantCount, openThrough, pauseAll, resumeAll } from "./proxied-clients.ts";

/** Far longer than the tests take, so that no test waits for an expiry. */
const ttlMs = 60_000;
const waitMs = 25_000;

onQuorum("a grant whose reply is lost", () => {
  test.each([
    { lost: [3, 4], isLibraryRepeating: true },
    { lost: [2, 3, 4], isLibraryRepeating: false },
    { lost: [0, 1, 2, 3, 4], isLibraryRepeating: false },
    { lost: [0, 1, 2, 3, 4], isLibraryRepeating: true },
  ])(
    "on the nodes $lost is found again or cleaned up (resent by the client library: $isLibraryRepeating)",
    async ({ lost, isLibraryRepeating }) => {
      const nodes = await startNodes();
      const proxies = await startProxies(nodes);
      const ledger = new ExclusionChecker();
      const one = openThrough(proxies, isLibraryRepeating);
      const other = open(nodes, { nodeTimeoutMs: 1_000 });
      await Promise.all([warmUp(one), warmUp(other)]);
      const key = newKey();
      const silenced = pick(proxies, lost);
      pauseAll(silenced, "answers");
      const acquiring = one.acquire(key, { ttlMs, waitMs });
      await waitUntil(async () => (await grantCount(nodes, key)) === 5, "all nodes have granted");
      const [token] = await holders(nodes, key);
      const waiting = other.acquire(key, { ttlMs, waitMs });
      await queued(nodes, key, 1);
      cutAll(silenced);
      resumeAll(silenced, "answers");
      const lease = ledger.granted(await acquiring);
      expect(await holders(nodes, key)).toEqual([token, token, token, token, token]);
      expect(await ledger.release(lease)).toBe(true);
      const next = ledger.granted(await waiting);
      await ledger.release(next);
      await expectNoResidue(nodes);
      expect(ledger).toMatchObject({ grants: 2, faults: [] });
    },
  );

  test("for good is cleaned up when the caller stops waiting, long before its TTL ends", async () => {
    const nodes = await startNodes();
    const proxies = await startProxies(nodes);
    const ledger = new ExclusionChecker();
    const one = openThrough(proxies, false);
    const other = open(nodes, { nodeTimeoutMs: 1_000 });
    await Promise.all([warmUp(one), warmUp(other)]);
    const key = newKey();
    pauseAll(proxies, "answers");
    const acquiring = rejection(one.acquire(key, { ttlMs, waitMs: 800 }));
    await waitUntil(async () => (await grantCount(nodes, key)) === 5, "all nodes have granted");
    const waiting = other.acquire(key, { ttlMs, waitMs });
    const { error } = await acquiring;
    expect(error).toMatchObject({ code: "quorum-not-reached", outcome: "unknown", retryable: true });
    const next = ledger.granted(await waiting);
    cutAll(proxies);
    resumeAll(proxies, "answers");
    expect(await ledger.release(next)).toBe(true);
    await expectNoResidue(nodes);
  });
});

function pick<T>(all: readonly T[], indexes: readonly number[]): T[] {
  return all.filter((_, index) => indexes.includes(index));
}
