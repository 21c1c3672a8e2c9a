import { setTimeout as pause } from "node:timers/promises";
import type { Lease } from "holdfast";
import { expect, test } from "vitest";

import { ExclusionChecker } from "../../support/exclusion-checker.ts";
import {
  holders,
  newKey,
  expectNoResidue,
  onQuorum,
  open,
  closeAndExpectNoResidue,
  startNodes,
  startProxies,
  warmUp,
} from "../../support/quorum-servers.ts";
import { QuorumWorker, sharedNow } from "../../support/quorum-workers.ts";
import { resumeAll, patient } from "./proxied-clients.ts";
import {
  claimMs,
  steps,
  ttlMs,
  waitMs,
  type Step,
  type Struck,
  type StruckProcess,
} from "./struck-process-steps.ts";

const lateMs = 10_000;

onQuorum("processes that are struck, each at another step,", () => {
  test("and killed: the others continue", async () => {
    await atEachStep(
      (worker) => worker.kill(),
      async ({ other, key, ledger }, { waiting, blockedMs, fencingToken = 0n, validUntil = 0 }) => {
        const lease = ledger.granted(await inTime(waiting, blockedMs));
        expect(sharedNow()).toBeGreaterThanOrEqual(validUntil);
        expect(lease.fencingToken).toBeGreaterThan(fencingToken);
        await ledger.release(lease);
        await ledger.release(ledger.granted(await other.acquire(key, { ttlMs, waitMs })));
      },
    );
  });

  test("and frozen: the others continue, and the thawed process changes no later lease", async () => {
    await atEachStep(
      async (worker) => {
        worker.freeze();
      },
      async (struckProcess, { waiting, blockedMs, fencingToken = 0n, validUntil = 0, afterwards }) => {
        const { nodes, ways: proxies, worker, third, key, ledger } = struckProcess;
        const lease = ledger.granted(await inTime(waiting, blockedMs));
        expect(sharedNow()).toBeGreaterThanOrEqual(validUntil);
        expect(lease.fencingToken).toBeGreaterThan(fencingToken);
        await lease.extend(); // the extension confirms a grant by notification
        const ours = mostOf(await holders(nodes, key));
        resumeAll(proxies, "requests");
        resumeAll(proxies, "answers");
        const turn = worker.event("granted");
        turn.catch(() => undefined);
        const releaseReported = afterwards === "released" ? worker.event("released") : undefined;
        worker.thaw();
        // The thawed process completes its step. The step does not affect the present lease.
        await pause(300);
        expect(mostOf(await holders(nodes, key))).toBe(ours);
        expect(lease.remainingMs()).toBeGreaterThan(0);
        if (afterwards === "lost") {
          expect(await worker.request("judge", { key }, "judged")).toMatchObject({ isLost: true });
          expect(await worker.request("release", { key }, "released")).toMatchObject({ released: false });
        }
        await releaseReported;
        const releasedAt = sharedNow();
        expect(await ledger.release(lease)).toBe(true);
        if (afterwards === "granted") {
          const mine = await turn;
          expect(mine.at).toBeGreaterThanOrEqual(releasedAt);
          expect(BigInt(mine.fencingToken)).toBeGreaterThan(lease.fencingToken);
          await worker.request("release", { key }, "released");
        }
        await ledger.release(ledger.granted(await third.acquire(key, { ttlMs, waitMs })));
      },
    );
  });
});

/** Runs all steps at once, each with a process and a key of its own. */
async function atEachStep(
  strike: (worker: QuorumWorker) => Promise<void>,
  check: (struckProcess: StruckProcess, struck: Struck) => Promise<void>,
): Promise<void> {
  const nodes = await startNodes(4);
  const options = { nodeTimeoutMs: 1_000, claimMs };
  const [other, third] = [open(nodes, options), open(nodes, options)];
  const ledger = new ExclusionChecker();
  const processes = await Promise.all(
    steps.map(async ({ step }) => {
      const proxies = await startProxies(nodes);
      const redlock = { ...patient, claimMs };
      const locks = { handover: { max: 0 } };
      const worker = await QuorumWorker.start({ name: step, drivers: [proxies], redlock, locks });
      await worker.request("warmUp", { count: nodes.length }, "warm");
      return {
        nodes,
        ways: proxies,
        worker,
        other,
        third,
        key: newKey(),
        ledger,
        strike: () => strike(worker),
      };
    }),
  );
  await Promise.all([warmUp(other), warmUp(third)]);
  await closeAndExpectNoResidue([other, third], nodes);
  const results = await Promise.allSettled(
    processes.map(async (struckProcess, index) =>
      check(struckProcess, await (steps[index] as Step).come(struckProcess)),
    ),
  );
  const failures = results.flatMap((result, index) =>
    result.status === "rejected" ? [{ step: steps[index]?.step, error: result.reason as unknown }] : [],
  );
  expect(failures).toEqual([]);
  await expectNoResidue(nodes);
  expect(ledger.faults).toEqual([]);
}

/** Awaits the lease, which must come soon after `blockedMs`. */
async function inTime(waiting: Promise<Lease>, blockedMs: number): Promise<Lease> {
  const since = performance.now();
  const lease = await waiting;
  expect(performance.now() - since).toBeLessThan(blockedMs + lateMs);
  return lease;
}

/** The token that more than half of the nodes have, or `undefined`. */
function mostOf(tokens: readonly (string | null)[]): string | null | undefined {
  return tokens.find((one) => tokens.filter((other) => other === one).length > tokens.length / 2);
}
