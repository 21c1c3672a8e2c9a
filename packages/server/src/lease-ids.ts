import { createHmac, timingSafeEqual } from "node:crypto";

import { leaseIdOf, readLeaseId, type LeaseParts } from "holdfast/http";

import { ServiceError } from "./refusal.ts";

/** The library's limit of keys in one lease. */
const maxGrants = 64;

/**
 * The lease ids of a service. With a signing key each id has a signature, so a forged or altered id never reaches the engine. Every
 * instance needs the same signing key, because any instance may renew a lease. Without a signing key the ids are unsigned.
 */
export class LeaseIds {
  readonly #key: string | undefined;
  /** The keys whose signatures count. */
  readonly #valid: readonly string[];

  /** @param former the key before a change, whose ids stay valid */
  constructor(key: string | undefined, former?: string) {
    this.#key = key;
    this.#valid = [key, former].filter((one) => one !== undefined);
  }

  get isSigned(): boolean {
    return this.#key !== undefined;
  }

  /** The signature precedes the keys, because `holdfast/http` uses the part before the keys as the token. */
  of(parts: LeaseParts): string {
    const leaseId = leaseIdOf(parts);
    if (this.#key === undefined) {
      return leaseId;
    }
    const end = leaseId.lastIndexOf(".");
    return `${leaseId.slice(0, end)}.${signatureOf(leaseId, this.#key)}${leaseId.slice(end)}`;
  }

  /** @throws {ServiceError} `not-found` for a forged or malformed id, `invalid` for one with too many keys */
  read(leaseId: string): LeaseParts {
    const parts = readLeaseId(this.#key === undefined ? leaseId : this.#verified(leaseId));
    if (!parts) {
      throw new ServiceError("not-found", "The lease id is not from this service");
    }
    if (parts.grants.length > maxGrants) {
      throw new ServiceError("invalid", `Expected a lease id with at most ${maxGrants} keys`);
    }
    return parts;
  }

  /** The lease id without its signature, or "" if no key has made the signature. */
  #verified(given: string): string {
    const [version = "", secret = "", signature = "", ...keys] = given.split(".");
    const leaseId = [version, secret, ...keys].join(".");
    return this.#valid.some((key) => isSignedBy(leaseId, signature, key)) ? leaseId : "";
  }
}

function isSignedBy(leaseId: string, signature: string, key: string): boolean {
  const [own, other] = [Buffer.from(signatureOf(leaseId, key)), Buffer.from(signature)];
  return own.length === other.length && timingSafeEqual(own, other);
}

function signatureOf(leaseId: string, key: string): string {
  return createHmac("sha256", key).update(leaseId).digest("base64url").slice(0, 22);
}
