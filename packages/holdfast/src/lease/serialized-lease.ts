import type { Grant, HolderInfo } from "../driver.ts";
import {
  checkInteger,
  checkKey,
  checkOptionNames,
  checkText,
  checkHolderInfo,
  invalidValue,
  minTtlMs,
} from "../option-checks.ts";
import type { SerializedLease } from "./lease.ts";

/** Validates the data of {@link Lease.transfer}. Error messages never contain the token. */
export function parseSerialized(serialized: SerializedLease): {
  key: string;
  token: string;
  fencingToken: bigint;
  info: HolderInfo;
  ttlMs: number;
} {
  if (typeof serialized !== "object" || serialized === null || Array.isArray(serialized)) {
    const type = Array.isArray(serialized) ? "an array" : serialized === null ? "null" : typeof serialized;
    throw new TypeError(
      `Expected \`serialized\` to be the result of transfer() (parse its JSON first), got ${type}`,
    );
  }
  checkOptionNames(serialized, [
    "version",
    "key",
    "token",
    "fencingToken",
    "owner",
    "reason",
    "labels",
    "ttlMs",
  ]);
  const { version, key, token, fencingToken, owner, reason, labels, ttlMs } = serialized;
  if (version !== 1) {
    throw invalidValue("serialized.version", "1", version);
  }
  if (typeof token !== "string" || token === "" || token.length > 512) {
    throw new TypeError("Expected `serialized.token` to be the token of a transferred lease");
  }
  if (typeof fencingToken !== "string" || !/^\d{1,39}$/.test(fencingToken)) {
    throw invalidValue("serialized.fencingToken", "a decimal number as text", fencingToken);
  }
  return {
    key: checkKey(key),
    token,
    fencingToken: BigInt(fencingToken),
    info: checkHolderInfo({ owner: checkText("serialized.owner", owner, 512), reason, labels }),
    ttlMs: checkInteger("serialized.ttlMs", ttlMs, minTtlMs, 86_400_000),
  };
}

/** Writes a lease in the form that {@link parseSerialized} reads. The result contains the token, so it is secret. */
export function serializeLease(
  lease: {
    readonly key: string;
    readonly grant: Grant;
    readonly fencingToken: bigint;
    readonly owner: string;
    readonly ttlMs: number;
  },
  { reason, labels }: HolderInfo = {},
): SerializedLease {
  const { key, grant, fencingToken, owner, ttlMs } = lease;
  return {
    version: 1,
    key,
    token: grant.token,
    fencingToken: fencingToken.toString(),
    owner,
    ...(reason === undefined ? {} : { reason }),
    ...(labels === undefined ? {} : { labels }),
    ttlMs,
  };
}
