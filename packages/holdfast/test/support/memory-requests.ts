import type { AcquireResult, AcquireRequest, Driver, Grant, PendingAcquire } from "../../src/driver.ts";

/** A request for `key`. By default the request waits for a minute and has a TTL of ten seconds. */
export function request(driver: Driver, key: string, more: Partial<AcquireRequest> = {}): AcquireRequest {
  const deadline = driver.clock.now() + 60_000;
  return {
    key,
    ttlMs: 10_000,
    deadline,
    ticket: undefined,
    fencingCount: 1,
    info: undefined,
    lockMode: undefined,
    ...more,
  };
}

/** The expected grant of a request. */
export async function grantOf(pending: PendingAcquire): Promise<Grant> {
  const acquired = await pending.result;
  if (acquired.outcome !== "granted") {
    throw new Error(`Expected a grant, got ${acquired.outcome}`);
  }
  return acquired.grant;
}

export function acquireNow(driver: Driver, key: string, more: Partial<AcquireRequest> = {}): Promise<Grant> {
  return grantOf(driver.acquire(request(driver, key, more)));
}

/** The present result of a request. Undefined while the request waits. */
export function outcomeOf(pending: PendingAcquire): Promise<AcquireResult | undefined> {
  return Promise.race([pending.result, Promise.resolve(undefined)]);
}

export function release(driver: Driver, grant: Grant): Promise<boolean> {
  return driver.release(grant.key, grant.token, grant.validity.until);
}
