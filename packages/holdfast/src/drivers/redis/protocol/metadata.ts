import type { HolderReport, HolderInfo } from "../../../driver.ts";
import type { LossReason } from "../../../errors.ts";
import type { Holder } from "../../../lock-state.ts";

/** An owner's own words as a script takes them: JSON of [field, value, ...], "" for none. */
export function encodeMetadata(info: (HolderInfo & Partial<HolderReport>) | undefined): string {
  if (info === undefined) {
    return "";
  }
  const { owner, reason, labels, fencingToken, localWaiters } = info;
  const fields: string[] = [];
  for (const [name, value] of [
    ["owner", owner],
    ["reason", reason],
    ["labels", labels && JSON.stringify(labels)],
    ["number", fencingToken?.toString()],
    ["waiting", localWaiters ? localWaiters.toString() : undefined],
  ] as const) {
    if (value !== undefined) {
      fields.push(name, value);
    }
  }
  return fields.length === 0 ? "" : JSON.stringify(fields);
}

/** The fields of a hash, as a script answers them: [field, value, ...]. */
export function decodeHash(answer: unknown): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  const list = answer as readonly unknown[];
  for (let i = 0; i + 1 < list.length; i += 2) {
    fields.set(String(list[i]), String(list[i + 1]));
  }
  return fields;
}

/** What of the words `inspect` tells. */
export function decodeMetadata(
  fields: ReadonlyMap<string, string>,
): Pick<Holder, "reason" | "labels" | "localWaiters"> & { owner?: string } {
  const owner = fields.get("owner");
  const reason = fields.get("reason");
  const labels = fields.get("labels");
  const localWaiters = Number(fields.get("waiting") ?? 0);
  return {
    ...(owner === undefined ? {} : { owner }),
    ...(reason === undefined ? {} : { reason }),
    ...decodeLabels(labels),
    ...(Number.isSafeInteger(localWaiters) && localWaiters > 0 ? { localWaiters } : {}),
  };
}

/** Labels that are no object of strings count as absent: one corrupt value must not make `list` reject. */
function decodeLabels(text: string | undefined): Pick<Holder, "labels"> {
  const labels = text === undefined ? undefined : parsed(text);
  const isRecord = typeof labels === "object" && labels !== null && !Array.isArray(labels);
  const isText = isRecord && Object.values(labels).every((value) => typeof value === "string");
  return isText ? { labels: labels as Record<string, string> } : {};
}

/** The metadata of one holder as a script answers it: JSON of [field, value, ...]. Anything else counts as absent. */
export function decodeJsonHash(text: string): ReadonlyMap<string, string> {
  const fields = text === "" ? [] : parsed(text);
  return decodeHash(Array.isArray(fields) ? fields : []);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/**
 * Of what several nodes were told of one holder. A node whose grant came by a message was told nothing yet, and of words that changed
 * hands within a process those with the greatest number are the last.
 */
export function newestMetadata(reports: readonly ReadonlyMap<string, string>[]): ReadonlyMap<string, string> {
  const numberOf = (info: ReadonlyMap<string, string>): bigint =>
    BigInt(/^\d+$/.exec(info.get("number") ?? "")?.[0] ?? 0);
  const info = reports.filter(({ size }) => size > 0);
  return info.reduce(
    (best, other) => (numberOf(other) > numberOf(best) ? other : best),
    info[0] ?? new Map(),
  );
}

/** Why a token is not the holder's any more, by what the scripts answer. */
export function lossReasonOf(status: unknown): LossReason {
  switch (Number(status)) {
    case 0:
      return "expired";
    case 3:
      return "broken";
    default:
      return "stolen";
  }
}
