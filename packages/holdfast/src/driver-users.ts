import type { Driver } from "./driver.ts";
import { closedError } from "./errors.ts";
import { invalidValue } from "./option-checks.ts";
import { withTimeout } from "./runtime/timeout.ts";

/** How many `Locks` use a driver. The last one closes the driver. */
const users = new WeakMap<Driver, number>();

/** @throws {TypeError} */
export function checkDriver(driver: Driver): void {
  const capabilities: unknown =
    typeof driver === "object" && driver !== null ? driver.capabilities : undefined;
  if (typeof capabilities !== "object" || capabilities === null) {
    throw invalidValue("driver", "a driver, such as redis(client) or memory()", driver);
  }
}

/** @throws {LockError} `closed`: the last user has closed the driver */
export function addUser(driver: Driver): void {
  if (users.get(driver) === 0) {
    throw closedError();
  }
  users.set(driver, (users.get(driver) ?? 0) + 1);
}

/** The last user closes the driver, within a time. */
export async function removeUser(driver: Driver, closeTimeoutMs: number): Promise<void> {
  const count = (users.get(driver) ?? 1) - 1;
  users.set(driver, count);
  if (count === 0) {
    await withTimeout(driver.clock, closeTimeoutMs, driver.close());
  }
}
