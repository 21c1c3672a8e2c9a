import { createHash, randomBytes } from "node:crypto";

import {
  createRemoteJWKSet,
  decodeJwt,
  errors,
  jwtVerify,
  type JWTPayload,
  type JWTVerifyGetKey,
} from "jose";

import type { Principal } from "./principal.ts";
import { ServiceError } from "./refusal.ts";

/** The scopes of a principal, by key prefix. */
export type Grants = Principal["grants"];

/** A bearer token, stored as a hash. */
export interface TokenEntry {
  readonly name: string;
  /** SHA-256, as 64 hex digits. */
  readonly sha256: string;
  readonly grants: Grants;
}

/** An issuer of signed tokens: a CI system, a cluster, an identity provider. */
export interface JwtIssuer {
  readonly issuer: string;
  readonly audience: string;
  /** The address of the issuer's public keys. */
  readonly jwksUrl: string;
  /**
   * The first rule for the token's subject states the bearer's grants. A `subject` that ends with `:` or `/` admits every subject
   * that begins with it; any other admits only an equal one.
   */
  readonly rules: readonly { readonly subject: string; readonly grants: Grants }[];
}

export interface AuthOptions {
  readonly tokens?: readonly TokenEntry[] | undefined;
  readonly jwt?: readonly JwtIssuer[] | undefined;
}

const algorithms = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];
const clockToleranceS = 5;
const keysTimeoutMs = 5_000;

/** A new bearer token for a client, and its hash for the service. */
export function newToken(): { token: string; sha256: string } {
  const token = `hf_${randomBytes(32).toString("base64url")}`;
  return { token, sha256: hashOf(token) };
}

/** A new token, its hash, and an example entry of the auth file, one line each. The token is stored nowhere. */
export function newTokenText(): string {
  const { token, sha256 } = newToken();
  const scopes = ["lock:acquire", "lock:read"] as const;
  const entry: TokenEntry = {
    name: "ci",
    sha256,
    grants: scopes.map((scope) => ({ scope, prefix: "order:" })),
  };
  return `token   ${token}\nsha256  ${sha256}\nentry   ${JSON.stringify(entry)}\n`;
}

interface Issuer {
  readonly issuer: JwtIssuer;
  readonly keys: JWTVerifyGetKey;
}

/** Identifies the principal of a request by its `Authorization` header. */
export class Authenticator {
  #tokens: ReadonlyMap<string, Principal> = new Map();
  #issuers: readonly Issuer[] = [];

  constructor(options: AuthOptions) {
    this.replace(options);
  }

  /** From now on only these tokens and issuers are known. */
  replace({ tokens = [], jwt = [] }: AuthOptions): void {
    const known = tokens.map(({ name, sha256, grants }) => {
      const hash = sha256.toLowerCase();
      const isCurrent = (): boolean => hasEqualGrants(this.#tokens.get(hash)?.grants, grants);
      return [hash, { name, quota: name, grants, isCurrent }] as const;
    });
    this.#tokens = new Map(known);
    this.#issuers = jwt.map((issuer) => ({ issuer, keys: this.#keysOf(issuer) }));
  }

  /** Keeps the keys that were fetched before, so that a change of the file causes no request. */
  #keysOf({ issuer, jwksUrl }: JwtIssuer): JWTVerifyGetKey {
    const same = this.#issuers.find((one) => one.issuer.issuer === issuer && one.issuer.jwksUrl === jwksUrl);
    return same?.keys ?? createRemoteJWKSet(new URL(jwksUrl), { timeoutDuration: keysTimeoutMs });
  }

  /** @throws {ServiceError} `unauthenticated` */
  async principalOf(authorization: string | undefined): Promise<Principal> {
    const token = /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
    if (token === undefined) {
      throw new ServiceError("unauthenticated", "Expected the header `Authorization: Bearer <token>`");
    }
    const known = this.#tokens.get(hashOf(token));
    if (known) {
      return known;
    }
    const signed = await this.#signed(token);
    if (signed) {
      return signed;
    }
    throw new ServiceError("unauthenticated", "The token is unknown or has expired");
  }

  /** Asks only the issuer that the token names, for its audience, so that no other issuer's outage refuses it. */
  async #signed(token: string): Promise<Principal | undefined> {
    const claims = claimsOf(token);
    for (const { issuer, keys } of this.#issuers) {
      const payload = isNamedBy(claims, issuer) ? await verified(token, keys, issuer) : undefined;
      if (payload) {
        return this.#principalOf(payload, issuer);
      }
    }
    return undefined;
  }

  #principalOf({ sub = "" }: JWTPayload, issuer: JwtIssuer): Principal {
    const { subject, grants } = ruleOf(issuer, sub);
    const isCurrent = (): boolean => {
      const present = this.#issuers.find((one) => isSameIssuer(one.issuer, issuer));
      return hasEqualGrants(present && ruleOf(present.issuer, sub).grants, grants);
    };
    return { name: `${issuer.issuer}#${sub}`, quota: `${issuer.issuer}#${subject}`, grants, isCurrent };
  }
}

/** The claims of a token, without a check of its signature; empty: the token is no JWT. */
function claimsOf(token: string): JWTPayload {
  try {
    return decodeJwt(token);
  } catch {
    return {};
  }
}

function isNamedBy({ iss, aud }: JWTPayload, { issuer, audience }: JwtIssuer): boolean {
  return iss === issuer && [aud].flat().includes(audience);
}

async function verified(
  token: string,
  keys: JWTVerifyGetKey,
  { issuer, audience }: JwtIssuer,
): Promise<JWTPayload | undefined> {
  try {
    const checks = {
      issuer,
      audience,
      algorithms,
      clockTolerance: clockToleranceS,
      requiredClaims: ["sub", "exp"],
    };
    return (await jwtVerify(token, keys, checks)).payload;
  } catch (error) {
    if (error instanceof errors.JOSEError && !(error instanceof errors.JWKSTimeout)) {
      return undefined;
    }
    throw new ServiceError("unauthenticated", "The public keys of the token's issuer are unavailable");
  }
}

/** The first rule for a subject, or one without grants. */
function ruleOf({ rules }: JwtIssuer, sub: string): JwtIssuer["rules"][number] {
  return rules.find(({ subject }) => admits(subject, sub)) ?? { subject: "", grants: [] };
}

/** Whether a token of the one is a token of the other. */
function isSameIssuer(one: JwtIssuer, other: JwtIssuer): boolean {
  return one.issuer === other.issuer && one.audience === other.audience && one.jwksUrl === other.jwksUrl;
}

function hasEqualGrants(present: Grants | undefined, former: Grants): boolean {
  return present === former || JSON.stringify(present) === JSON.stringify(former);
}

/** A prefix ends at a separator: `repo:acme` must not admit `repo:acme-evil`. */
function admits(subject: string, sub: string): boolean {
  return sub === subject || (/[:/]$/.test(subject) && sub.startsWith(subject));
}

function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
