import type { Driver } from "../../driver.ts";
import { attempts } from "./attempts.ts";
import { close } from "./close.ts";
import { election } from "./election.ts";
import { exclusion } from "./exclusion.ts";
import { fencing } from "./fencing.ts";
import { breakCases } from "./break.ts";
import { renewal } from "./renewal.ts";
import { latch } from "./latch.ts";
import { fairness } from "./fairness.ts";
import { readWrite } from "./read-write.ts";
import { reentrant } from "./reentrant.ts";
import { semaphore } from "./semaphore.ts";
import { severalKeys } from "./several-keys.ts";
import { minHold } from "./min-hold.ts";
import { once } from "./once.ts";
import { onlyKind, Fixture, type Cases } from "./fixture.ts";
import { inspect } from "./inspect.ts";
import { waiting } from "./waiting.ts";
import { withLock } from "./with-lock.ts";

export interface OpenedDriver {
  readonly driver: Driver;
  /** A second driver on the same engine, for the other process. @defaultValue the first driver */
  readonly other?: Driver | undefined;
  /** Called after the drivers are closed. */
  readonly cleanup?: (() => Promise<void>) | undefined;
}

export interface Conformance {
  /** The test function of the test runner. */
  readonly test: (name: string, body: () => Promise<void>) => unknown;
  /** Called for every test. Tests may share an engine, because each test uses its own keys. */
  readonly open: () => Promise<OpenedDriver>;
  /** How long a test may take, ms, before it fails and closes its drivers. @defaultValue 25 000 */
  readonly limitMs?: number | undefined;
}

const topics: readonly Cases[] = [
  exclusion,
  waiting,
  fairness,
  attempts,
  fencing,
  renewal,
  breakCases,
  inspect,
  withLock,
  once,
  minHold,
  reentrant,
  severalKeys,
  election,
  onlyKind("read-write", (locks, key) => locks.readWrite(key), readWrite),
  onlyKind("semaphore", (locks, key) => locks.semaphore(key, { limit: 2 }), semaphore),
  onlyKind("latch", (locks, key) => locks.latch(key, { count: 1, ttlMs: 1_000 }), latch),
  close,
];

/**
 * Declares the tests that every driver must pass. They cover everything that users of `createLocks` rely on with any engine.
 * The tests use the driver's clock and run in real time. The slowest test takes seconds.
 */
export function driverConformance({ test, open, limitMs = 25_000 }: Conformance): void {
  for (const [name, testCase] of topics.flatMap((cases) => Object.entries(cases))) {
    test(name, async () => {
      const opened = await open();
      try {
        const fixture = new Fixture(opened.driver, opened.other ?? opened.driver, {
          testName: name,
          limitMs,
        });
        await fixture.run(testCase);
      } finally {
        await opened.cleanup?.();
      }
    });
  }
}
