import type { Driver } from "../../src/driver.ts";

/** A driver some of whose calls are answered otherwise. */
export function altered(driver: Driver, changes: Partial<Driver>): Driver {
  return new Proxy(driver, {
    get(target, name) {
      const changed: unknown = Reflect.get(changes, name);
      const value: unknown = changed ?? Reflect.get(target, name, target);
      return changed === undefined && typeof value === "function" ? value.bind(target) : value;
    },
  });
}
