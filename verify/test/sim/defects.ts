import type { Clock, Driver } from "holdfast";
import type { AcquireResult, Grant } from "holdfast/testing";

import type { CheckName } from "../../sim/judge/findings.ts";

/** The driver with some of its members replaced. */
export function altered(driver: Driver, overrides: Partial<Driver>): Driver {
  return new Proxy(driver, {
    get(target, name) {
      const value: unknown = overrides[name as keyof Driver] ?? Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** The driver with the fencing number 1 for every grant. */
export function withConstantNumber(driver: Driver): Driver {
  return altered(driver, {
    acquire: (request) => {
      const pending = driver.acquire(request);
      const result = pending.result.then((acquired): AcquireResult =>
        acquired.outcome === "granted"
          ? { outcome: "granted", grant: { ...acquired.grant, fencingToken: 1n } }
          : acquired,
      );
      return { result, cancel: pending.cancel.bind(pending) };
    },
  });
}

type Latches = NonNullable<Driver["latches"]>;

/** The driver with changed operations of latches. */
export function withLatches(
  change: (latches: Latches, driver: Driver) => Partial<Latches>,
): (driver: Driver) => Driver {
  return (driver) => {
    const { latches } = driver;
    if (!latches) {
      return driver;
    }
    const own: Latches = {
      countDown: (latch, attemptId) => latches.countDown(latch, attemptId),
      wait: (latch, deadline) => latches.wait(latch, deadline),
    };
    return altered(driver, { latches: { ...own, ...change(own, driver) } });
  };
}

/** Drivers with a defect, by the check that must find the defect. Each driver is created for one world. */
export const defects: Readonly<Record<CheckName, () => (driver: Driver) => Driver>> = {
  /** A try gets the latest grant of another caller. */
  exclusion: () => {
    let last: Grant | undefined;
    return (driver) =>
      altered(driver, {
        acquire: (request) => {
          if (request.deadline === null && last !== undefined) {
            const grant = { ...last, fencingToken: last.fencingToken + 1n };
            const acquired: AcquireResult = { outcome: "granted", grant };
            return { result: Promise.resolve(acquired), cancel: () => undefined };
          }
          const pending = driver.acquire(request);
          void pending.result.then(
            (acquired) => {
              last = acquired.outcome === "granted" ? acquired.grant : last;
            },
            () => undefined,
          );
          return pending;
        },
      });
  },
  fencing: () => withConstantNumber,
  /** The engine gets a higher limit than the caller named. */
  capacity: () => (driver) =>
    altered(driver, {
      acquire: ({ lockMode, ...request }) =>
        driver.acquire({
          ...request,
          lockMode: lockMode?.kind === "semaphore" ? { ...lockMode, limit: lockMode.limit + 1 } : lockMode,
        }),
    }),
  /** The grant of one of several keys names another key. */
  "multi-lock": () => (driver) =>
    altered(driver, {
      acquire: (request) => {
        const { cancel, result } = driver.acquire(request);
        const misnamed = result.then((acquired) =>
          acquired.outcome === "granted" && request.key === "b"
            ? { ...acquired, grant: { ...acquired.grant, key: "c" } }
            : acquired,
        );
        return { cancel, result: misnamed };
      },
    }),
  /** A caller gets the same grant again after its release. */
  reentry: () => withConstantNumber,
  /** The latest waiter is the first in the queue. */
  order: () => {
    let ticket = 2 ** 52;
    return (driver) =>
      altered(driver, { acquire: (request) => driver.acquire({ ...request, ticket: (ticket -= 1) }) });
  },
  /** A release returns true without an effect. */
  progress: () => (driver) => altered(driver, { release: () => Promise.resolve(true) }),
  /** A release has its effect, and returns false. */
  release: () => (driver) =>
    altered(driver, {
      release: async (key, token, until) => {
        await driver.release(key, token, until);
        return false;
      },
    }),
  /** An acquire fails with an error that is no error of the library. */
  refusal: () => (driver) =>
    altered(driver, {
      acquire: () => ({ result: Promise.reject(new Error("planted")), cancel: () => undefined }),
    }),
  /** The `attemptId` is lost, so that each call counts. */
  count: () => withLatches(({ countDown }) => ({ countDown: (latch) => countDown(latch, undefined) })),
  /** A caller that has used an expired latch counts the next latch down. */
  latch: () =>
    withLatches(({ countDown }) => ({
      countDown: (latch, attemptId) => countDown({ ...latch, generation: undefined }, attemptId),
    })),
  /** All timers fire late. */
  loss: () => (driver) => {
    const { clock } = driver;
    const late: Clock = {
      now: clock.now.bind(clock),
      wall: clock.wall.bind(clock),
      setTimer: (action, delayMs, hold) => clock.setTimer(action, delayMs + 20, hold),
      clearTimer: clock.clearTimer.bind(clock),
    };
    return altered(driver, { clock: late });
  },
  /** A timer is never cleared. */
  residue: () => (driver) =>
    altered(driver, {
      acquire: (request) => {
        driver.clock.setTimer(() => undefined, 1_000_000);
        return driver.acquire(request);
      },
    }),
  /** A rejected promise has no handler. */
  rejection: () => (driver) =>
    altered(driver, {
      acquire: (request) => {
        void Promise.reject(new Error("planted"));
        return driver.acquire(request);
      },
    }),
  /** Each acquire sends many needless requests. */
  messages: () => (driver) =>
    altered(driver, {
      acquire: (request) => {
        for (let i = 0; i < 20; i += 1) {
          driver.clock.setTimer(() => {
            driver.verify(request.key, "no token").catch(() => undefined);
          }, i * 5);
        }
        return driver.acquire(request);
      },
    }),
};
