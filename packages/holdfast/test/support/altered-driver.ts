import type { Driver } from "../../src/driver.ts";

/** A driver with other replies to some calls. */
export function altered(driver: Driver, changes: Partial<Driver>): Driver {
  return new Proxy(driver, {
    get(target, name) {
      if (Object.hasOwn(changes, name)) {
        return Reflect.get(changes, name);
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
