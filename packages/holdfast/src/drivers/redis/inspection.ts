import { lockState, type Holder, type LockState } from "../../state.ts";
import { clientKey } from "./keys.ts";
import type { Node } from "./node.ts";
import { clients } from "./scripts.generated.ts";
import { readFields, readWords } from "./words.ts";

const ourToken = /^[\da-f]{32}:([\da-f]{32}):\d+$/;

/** What the script `inspect` answered for one lock. */
export interface Facts {
  readonly holder: string;
  readonly remainingMs: number;
  readonly first: bigint | null;
  readonly last: bigint | null;
  readonly words: ReadonlyMap<string, string>;
  readonly waiterCount: number;
  readonly members: readonly string[];
}

export function readFacts(value: unknown): Facts {
  const [holder, remainingMs, first, last, words, waiterCount, members] = value as unknown[];
  return {
    holder: String(holder),
    remainingMs: Number(remainingMs),
    first: first === "" ? null : BigInt(String(first)),
    last: last === "" ? null : BigInt(String(last)),
    words: readFields(words),
    waiterCount: Number(waiterCount),
    members: (members as unknown[]).map(String),
  };
}

/** Makes of the facts what is told: owners by their clients' descriptions, and no token. */
export async function describe(node: Node, key: string, facts: Facts): Promise<LockState> {
  const owners = await ownersOf(node, [facts.holder, ...facts.members.map(tokenOf)]);
  const isHeld = facts.holder !== "";
  const remainingMs = remainingOf(facts);
  return lockState({
    key,
    kind: "mutex",
    limit: 1,
    holders: isHeld ? [holderOf(facts, owners[0] ?? "unknown", newestOf(facts))] : [],
    waiters: facts.members.map((_member, position) => ({
      owner: owners[position + 1] ?? "unknown",
      position,
    })),
    waiterCount: facts.waiterCount,
    remainingMs,
    fencingToken: facts.first,
    nodes: [{ node: node.connection.name, held: isHeld }],
  });
}

/** A newer grant makes a number stale; within a block handed over in memory, the number that the holder told last. */
export function judgeFence(facts: Facts, fencingToken: bigint): "current" | "stale" | "unknown" {
  const newest = newestOf(facts);
  if (newest === null || facts.last === null || fencingToken > facts.last) {
    return "unknown";
  }
  return fencingToken < newest ? "stale" : "current";
}

/** The number that the holder told last, as it may have handed the lease on in memory; else the first of its block. */
export function newestOf(facts: Facts): bigint | null {
  const told = facts.words.get("number");
  return told === undefined ? facts.first : BigInt(told);
}

/** What is left of the holder's TTL, ms; null: nobody holds it, or without expiry. */
export function remainingOf(facts: Facts): number | null {
  return facts.holder !== "" && facts.remainingMs >= 0 ? facts.remainingMs : null;
}

export function holderOf(facts: Facts, clientOwner: string, fencingToken: bigint | null): Holder {
  const remainingMs = remainingOf(facts);
  return {
    owner: clientOwner,
    ...readWords(facts.words),
    ...(ourToken.test(facts.holder) && fencingToken !== null ? { fencingToken } : {}),
    ...(remainingMs === null ? {} : { remainingMs }),
  };
}

/** Of a queue member. */
export function tokenOf(member: string): string {
  return member.split(" ")[0] ?? "";
}

/** The owners of tokens, asked for at once; "unknown" for what is not ours or whose client is gone. */
export async function ownersOf(node: Node, tokens: readonly string[]): Promise<string[]> {
  const ids = tokens.map((token) => ourToken.exec(token)?.[1]);
  const known = [...new Set(ids.filter((id) => id !== undefined))];
  const owners = new Map<string, string>();
  if (known.length > 0) {
    const answers = (await node.ask(clients, known.map(clientKey), [])) as unknown[];
    known.forEach((id, index) => {
      owners.set(id, readFields(answers[index]).get("owner") ?? "unknown");
    });
  }
  return ids.map((id) => (id === undefined ? "unknown" : (owners.get(id) ?? "unknown")));
}
