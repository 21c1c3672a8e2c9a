import type { Driver } from "./driver.ts";
import { closedError } from "./errors.ts";
import { withTimeout } from "./runtime/timeout.ts";

/** How many `Locks` use a driver. The last one closes the driver. */
const users = new WeakMap<Driver, number>();

/** @throws {TypeError} */
export function checkDriver(driver: Driver): void {
  const capabilities: unknown =
    typeof driver === "object" && driver !== null ? driver.capabilities : undefined;
  if (typeof capabilities !== "object" || capabilities === null) {
    // Only the type, because a URL or the options of a client may have a password.
    const type = driver === null ? "null" : typeof driver;
    throw new TypeError(`Expected \`driver\` to be a driver, such as redis(client) or memory(), got ${type}`);
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
