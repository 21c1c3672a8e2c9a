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
  const owners = await ownersOf(node, [
    facts.holder,
    ...facts.members.map((member) => member.split(" ")[0] ?? ""),
  ]);
  const isHeld = facts.holder !== "";
  const remainingMs = isHeld && facts.remainingMs >= 0 ? facts.remainingMs : null;
  return lockState({
    key,
    kind: "mutex",
    limit: 1,
    holders: isHeld ? [holderOf(facts, owners[0] ?? "unknown", remainingMs)] : [],
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
  if (facts.first === null || facts.last === null || fencingToken > facts.last) {
    return "unknown";
  }
  const told = facts.words.get("number");
  const newest = told === undefined ? facts.first : BigInt(told);
  return fencingToken < newest ? "stale" : "current";
}

function holderOf(facts: Facts, clientOwner: string, remainingMs: number | null): Holder {
  const told = facts.words.get("number");
  const fencingToken = told === undefined ? facts.first : BigInt(told);
  const isOurs = ourToken.test(facts.holder);
  return {
    owner: clientOwner,
    ...readWords(facts.words),
    ...(isOurs && fencingToken !== null ? { fencingToken } : {}),
    ...(remainingMs === null ? {} : { remainingMs }),
  };
}

/** The owners of tokens, asked for at once; "unknown" for what is not ours or whose client is gone. */
async function ownersOf(node: Node, tokens: readonly string[]): Promise<string[]> {
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
