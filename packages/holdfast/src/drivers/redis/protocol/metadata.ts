import type { HolderReport, HolderInfo } from "../../../driver.ts";
import type { LossReason } from "../../../errors.ts";
import type { Holder } from "../../../lock-state.ts";

/** Encodes metadata for a script: JSON of [field, value, ...], or "" for none. */
export function encodeMetadata(info: (HolderInfo & Partial<HolderReport>) | undefined): string {
  if (info === undefined) {
    return "";
  }
  const { owner, reason, labels, fencingToken, isLast, localWaiters, localWaitMs } = info;
  const fields: string[] = [];
  for (const [name, value] of [
    ["owner", owner],
    ["reason", reason],
    ["labels", labels && JSON.stringify(labels)],
    ["number", fencingToken?.toString()],
    ["last", isLast === true ? fencingToken?.toString() : undefined],
    ["waiting", localWaiters ? localWaiters.toString() : undefined],
    ["waited", localWaitMs?.toString()],
  ] as const) {
    if (value !== undefined) {
      fields.push(name, value);
    }
  }
  return fields.length === 0 ? "" : JSON.stringify(fields);
}

/** Decodes the fields of a hash in a script's reply: [field, value, ...]. */
export function decodeHash(answer: unknown): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  const list = answer as readonly unknown[];
  for (let i = 0; i + 1 < list.length; i += 2) {
    fields.set(String(list[i]), String(list[i + 1]));
  }
  return fields;
}

/** The metadata that `inspect` reports. */
export function decodeMetadata(
  fields: ReadonlyMap<string, string>,
): Pick<Holder, "reason" | "labels" | "localWaiters" | "localWaitMs"> & { owner?: string } {
  const owner = fields.get("owner");
  const reason = fields.get("reason");
  const labels = fields.get("labels");
  const localWaiters = Number(fields.get("waiting") ?? 0);
  const localWaitMs = Number(fields.get("waited") ?? -1);
  return {
    ...(owner === undefined ? {} : { owner }),
    ...(reason === undefined ? {} : { reason }),
    ...decodeLabels(labels),
    ...(Number.isSafeInteger(localWaiters) && localWaiters > 0 ? { localWaiters } : {}),
    ...(Number.isSafeInteger(localWaitMs) && localWaitMs >= 0 ? { localWaitMs } : {}),
  };
}

/** Labels that are not an object of strings count as absent, because one corrupt value must not make `list` reject. */
function decodeLabels(text: string | undefined): Pick<Holder, "labels"> {
  const labels = text === undefined ? undefined : parsed(text);
  const isRecord = typeof labels === "object" && labels !== null && !Array.isArray(labels);
  const isText = isRecord && Object.values(labels).every((value) => typeof value === "string");
  return isText ? { labels: labels as Record<string, string> } : {};
}

/** Decodes one holder's metadata in a script's reply: JSON of [field, value, ...]. Any other text counts as absent. */
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
 * The newest metadata of one holder from several nodes: the metadata with the highest fencing number. A hand-over in the holder's process
 * raises that number. A node that granted by notification has no metadata yet.
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

/** The reason of a loss, from the loss status in a script's reply. */
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
