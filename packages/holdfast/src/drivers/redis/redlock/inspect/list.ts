import type { ListQuery } from "../../../../driver.ts";
import { invalidCursor } from "../../../../option-checks.ts";
import { QuorumError } from "../../../../errors.ts";
import type { LockState } from "../../../../lock-state.ts";
import { checkCursor } from "../../single/server-directory.ts";
import type { NodeSet } from "../node-set.ts";
import type { KeySpace } from "../../protocol/keys.ts";
import type { QuorumLockView } from "./lock-view.ts";
import { pageBudgetMs } from "../../single/server-directory.ts";
import { scanScript } from "../../protocol/scripts.generated.ts";
import type { QuorumNode } from "../quorum-node.ts";

/**
 * Lists the locks that a majority holds. Such a lock is on at least one of any N − majority + 1 nodes. The list scans this number of
 * nodes, one after another, and the first scanned node that has the lock reports it. The cursor is
 * "<the scanned nodes, separated by commas>:<node>:<the node's own cursor>".
 */
export async function listByMajority(
  nodeSet: NodeSet,
  keySpace: KeySpace,
  { prefix, cursor, limit, signal }: ListQuery,
  viewOf: (key: string) => Promise<QuorumLockView>,
): Promise<{ locks: LockState[]; cursor: string | null }> {
  const { nodes, majority } = nodeSet;
  const needed = nodes.length - majority + 1;
  let [done, index, at] = cursor === null ? [new Set<number>(), 0, "0"] : readCursor(cursor, nodes.length);
  const locks: LockState[] = [];
  const end = nodeSet.now() + pageBudgetMs;
  for (;;) {
    signal?.throwIfAborted();
    const node = nodes[index];
    if (!node) {
      throw tooFewNodes(nodeSet);
    }
    const page = await pageOf(node, keySpace.patternOf(prefix), at, limit).catch(() => undefined);
    if (!page) {
      [index, at] = [index + 1, "0"]; // the next node that has the locks reports them
      continue;
    }
    const keys = page.found.map((lock) => keySpace.keyOf(lock)).filter((key) => key !== undefined);
    const views = await Promise.all(keys.map(viewOf));
    const firstHere = views.filter(
      ({ holding: holders }) =>
        holders.find(({ node }) => done.has(node.index) || node.index === index)?.node.index === index,
    );
    locks.push(...(await Promise.all(firstHere.map((view) => view.describe()))));
    at = page.next;
    if (at === "0") {
      done.add(index);
      index += 1;
    }
    if (done.size === needed) {
      return { locks, cursor: null };
    }
    if (locks.length >= limit || nodeSet.now() >= end) {
      return { locks, cursor: `${[...done].join(",")}:${index}:${at}` };
    }
  }
}

/** @throws {RangeError} */
function readCursor(cursor: string, count: number): [done: Set<number>, index: number, at: string] {
  checkCursor(cursor, /^(?:\d{1,2}(?:,\d{1,2})*)?:\d{1,2}:(\d{1,20})$/);
  const [done = "", index = "0", at = "0"] = cursor.split(":");
  if (Number(index) >= count) {
    throw invalidCursor(cursor);
  }
  return [new Set(done === "" ? [] : done.split(",").map(Number)), Number(index), at];
}

async function pageOf(
  node: QuorumNode,
  pattern: string,
  at: string,
  limit: number,
): Promise<{ next: string; found: string[] }> {
  const [next, found] = (await node.server.run(scanScript, [], [at, pattern, String(limit)])) as [
    unknown,
    unknown[],
  ];
  return { next: String(next), found: found.map(String) };
}

function tooFewNodes({ nodes }: NodeSet): QuorumError {
  return new QuorumError({
    votes: nodes.map(({ name }) => ({
      node: name,
      vote: "error",
      latencyMs: null,
      reason: "the node could not be scanned",
    })),
    outcome: "none",
    retryable: true,
  });
}
