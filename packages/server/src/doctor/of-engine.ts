import type { Driver } from "holdfast";

import { diagnoseDriver } from "./driver-doctor.ts";
import type { Diagnosis } from "./finding.ts";

/** The TTL of `holdfast doctor`, ms. */
const ttlMs = 30_000;

/** The checks of the engine of a service. Their code is loaded at their first use. @param engine a URL, or a driver without a URL */
export function doctorOf(
  engine: string | Driver,
  driver: Driver,
): (signal: AbortSignal) => Promise<Diagnosis> {
  return async (signal) => {
    if (typeof engine !== "string" || driver.capabilities.guarantee === "process") {
      return diagnoseDriver(driver, { ttlMs });
    }
    const { diagnose } = await import("./diagnose.ts");
    return diagnose(engine, { ttlMs, signal });
  };
}
