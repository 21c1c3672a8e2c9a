import {
  grantTimes,
  lockState,
  waitTimes,
  type HeldKind,
  type Holder,
  type LockState,
} from "../../lock-state.ts";
import { limitOf, modeOf } from "../store/shares.ts";
import { bytes, textOf, type Row } from "./client.ts";

/** The metadata of a holder. */
export interface HolderInfo {
  readonly owner: string;
  readonly reason?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

export function encodeInfo({ owner, reason, labels }: HolderInfo): Uint8Array {
  return bytes(JSON.stringify({ owner, reason, labels }));
}

/** @param row with `info`, `fencing`, `weight`, `remainingMs`, and `now`, the server's clock in ms since 1970, if it was read */
export function holderOf(kind: HeldKind, row: Row): Holder {
  const weight = Number(row["weight"]);
  const info = JSON.parse(textOf(row["info"])) as Pick<Holder, "owner">;
  return {
    ...info,
    fencingToken: BigInt(textOf(row["fencing"])),
    ...modeOf(kind, weight),
    remainingMs: Math.max(0, Number(row["remainingMs"])),
    ...(row["now"] === undefined ? {} : grantTimes(BigInt(textOf(row["fencing"])), Number(row["now"]))),
  };
}

/** The rows of one key. `waiters` are the first of them, in queue order. */
export interface KeyRows {
  readonly key: string;
  readonly lock: Row | undefined;
  readonly holders: readonly Row[];
  readonly waiters: readonly Row[];
}

export function stateOf({ key, lock, holders: holderRows, waiters }: KeyRows): LockState {
  const isUsed = holderRows.length > 0 || waiters.length > 0;
  const kind = isUsed && lock ? (textOf(lock["kind"]) as HeldKind) : "mutex";
  const holders = holderRows.map((row) => holderOf(kind, row));
  const numbers = holders.map(({ fencingToken = 0n }) => fencingToken);
  return lockState({
    key,
    kind,
    limit: limitOf(kind, Number(lock?.["capacity"])),
    holders,
    waiters: waiters.map((row, position) => {
      const times = waitTimes(Number(textOf(row["ticket"])), Number(row["now"]));
      return { owner: textOf(row["owner"]), position, ...times };
    }),
    waiterCount: Number(waiters[0]?.["total"] ?? 0),
    remainingMs: holders.at(-1)?.remainingMs ?? null,
    fencingToken: numbers.length === 0 ? null : numbers.reduce((a, b) => (a > b ? a : b)),
    nodes: [{ node: "mysql", held: holders.length > 0 }],
  });
}
