import type { AcquireResult, Clock, Driver, Grant, MultiAcquired } from "holdfast";

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

/** Every grant has the number 1. */
export function ofNumberOne(driver: Driver): Driver {
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

/** The driver with another way to do what is done with latches. */
export function latching(
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

/** Drivers that go wrong, by the check that is to find it. Each is made anew for one world. */
export const defects: Readonly<Record<CheckName, () => (driver: Driver) => Driver>> = {
  /** Who tries has what another was granted last. */
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
  fencing: () => ofNumberOne,
  /** It keeps another limit than it was told. */
  capacity: () => (driver) =>
    altered(driver, {
      acquire: ({ lockMode, ...request }) =>
        driver.acquire({
          ...request,
          lockMode: lockMode?.kind === "semaphore" ? { ...lockMode, limit: lockMode.limit + 1 } : lockMode,
        }),
    }),
  /** One of several keys is forgotten. */
  "multi-lock": () => (driver) =>
    altered(driver, {
      acquireMany: async (requests) => {
        const together = (await driver.acquireMany?.(requests)) as MultiAcquired;
        return together.outcome === "granted" ? { ...together, grants: together.grants.slice(1) } : together;
      },
    }),
  /** Who gave a lock back has the same grant again. */
  reentry: () => ofNumberOne,
  /** Who comes is first. */
  order: () => {
    let place = 2 ** 52;
    return (driver) =>
      altered(driver, { acquire: (request) => driver.acquire({ ...request, ticket: (place -= 1) }) });
  },
  /** It says that it has released. */
  progress: () => (driver) => altered(driver, { release: () => Promise.resolve(true) }),
  /** It says that it has not. */
  release: () => (driver) =>
    altered(driver, {
      release: async (key, token, until) => {
        await driver.release(key, token, until);
        return false;
      },
    }),
  /** Waiting is refused by an error that is none of ours. */
  refusal: () => (driver) =>
    altered(driver, {
      acquire: () => ({ result: Promise.reject(new Error("planted")), cancel: () => undefined }),
    }),
  /** A name is no name: each call counts. */
  count: () => latching(({ countDown }) => ({ countDown: (latch) => countDown(latch, undefined) })),
  /** Who knew a latch that is over has the next one. */
  latch: () =>
    latching(({ countDown }) => ({
      countDown: (latch, attemptId) => countDown({ ...latch, generation: undefined }, attemptId),
    })),
  /** Its timers run late. */
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
  /** A timer is forgotten. */
  residue: () => (driver) =>
    altered(driver, {
      acquire: (request) => {
        driver.clock.setTimer(() => undefined, 1_000_000);
        return driver.acquire(request);
      },
    }),
  /** Nobody hears of a failure. */
  rejection: () => (driver) =>
    altered(driver, {
      acquire: (request) => {
        void Promise.reject(new Error("planted"));
        return driver.acquire(request);
      },
    }),
  /** It asks and asks. */
  messages: () => (driver) =>
    altered(driver, {
      acquire: (request) => {
        for (let i = 0; i < 20; i += 1) {
          driver.clock.setTimer(() => {
            driver.verify(request.key, "nobody").catch(() => undefined);
          }, i * 5);
        }
        return driver.acquire(request);
      },
    }),
};
