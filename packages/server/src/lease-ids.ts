import { createHmac, timingSafeEqual } from "node:crypto";

import { leaseIdOf, readLeaseId, type LeaseParts } from "holdfast/http";

import { ServiceError } from "./refusal.ts";

/** As many keys as one lease of the library may have. */
const maxGrants = 64;

/**
 * The lease ids of a service. With a key each id carries a signature, so a forged or altered id never reaches the engine. Every instance
 * needs the same key: a lease is renewed by any of them. Without a key the ids are unsigned.
 */
export class LeaseIds {
  readonly #key: string | undefined;

  constructor(key: string | undefined) {
    this.#key = key;
  }

  get isSigned(): boolean {
    return this.#key !== undefined;
  }

  /** The signature stands before the keys: `holdfast/http` keeps all but the keys as its secret. */
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
    const parts = readLeaseId(this.#key === undefined ? leaseId : verifySignature(leaseId, this.#key));
    if (!parts) {
      throw new ServiceError("not-found", "That is no lease id of this service");
    }
    if (parts.grants.length > maxGrants) {
      throw new ServiceError("invalid", `Expected a lease id to have ${maxGrants} keys at the most`);
    }
    return parts;
  }
}

/** The lease id without its signature; empty where the signature does not match. */
function verifySignature(given: string, key: string): string {
  const [version = "", secret = "", signature = "", ...keys] = given.split(".");
  const leaseId = [version, secret, ...keys].join(".");
  const [own, other] = [Buffer.from(signatureOf(leaseId, key)), Buffer.from(signature)];
  return own.length === other.length && timingSafeEqual(own, other) ? leaseId : "";
}

function signatureOf(leaseId: string, key: string): string {
  return createHmac("sha256", key).update(leaseId).digest("base64url").slice(0, 22);
}
