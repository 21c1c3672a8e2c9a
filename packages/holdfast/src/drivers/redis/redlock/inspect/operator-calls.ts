import { type NodeVote, QuorumError } from "../../../../errors.ts";
import {
  auditPage,
  type AuditPage,
  type AuditQuery,
  type AuditRecord,
  type BreakNote,
  type BreakOutcome,
  maxAuditRecords,
} from "../../../../operator/audit.ts";
import type { Random } from "../../../../runtime/random.ts";
import { encodeRecordNote, parseAuditRecord } from "../../protocol/audit-record.ts";
import type { KeySpace, LockKeys } from "../../protocol/keys.ts";
import { messageOf, serverRefusal } from "../../server/errors.ts";
import type { NodeSet } from "../node-set.ts";
import { withProposedFence } from "../../protocol/operation.ts";
import { QuorumLockView } from "./lock-view.ts";
import type { ListQuery } from "../../../../driver.ts";
import type { FenceState, LockState, NodeState } from "../../../../lock-state.ts";
import { listByMajority } from "./list.ts";

const randomDigits = 5;

/** The id of a record on all nodes: the time in microseconds that the nodes agree on, and random digits. */
function quorumAuditId(nodeSet: NodeSet, random: Random): string {
  const digits = Math.floor(random.nextFloat() * 10 ** randomDigits);
  return nodeSet.nextProposal() + String(digits).padStart(randomDigits, "0");
}

/**
 * Reads the audits of a majority of the nodes. Each node has records of the breaks on that node. Records of one grant by one operator are
 * one break, because a repeat may have completed it on further nodes. The page has the record with the smallest id.
 */
async function readQuorumAudit(nodeSet: NodeSet, keySpace: KeySpace, query: AuditQuery): Promise<AuditPage> {
  const replies = await Promise.all(
    nodeSet.nodes.map(({ name, server }) =>
      server.command("ZRANGE", [keySpace.auditKey(), "0", "-1"]).then(
        (members) => ({ name, members: members as unknown[], error: undefined }),
        (error: unknown) => ({ name, members: undefined, error }),
      ),
    ),
  );
  if (replies.filter(({ members }) => members).length < nodeSet.majority) {
    throw new QuorumError({
      votes: replies.map(({ name, members, error }) => ({
        node: name,
        vote: members ? "held" : "error",
        latencyMs: null,
        reason: members ? null : messageOf(error),
      })),
      outcome: "none",
      retryable: true,
    });
  }
  return mergedPage(
    replies.flatMap(({ members = [] }) => members.map((member) => parseAuditRecord(String(member)))),
    query,
  );
}

function mergedPage(found: readonly (AuditRecord | undefined)[], query: AuditQuery): AuditPage {
  const breaks = new Map<string, AuditRecord>();
  let wanted: string | undefined;
  for (const record of found.filter((one) => one !== undefined)) {
    const name = JSON.stringify([record.key, String(record.fencingToken), record.by]);
    const known = breaks.get(name);
    if (known === undefined || BigInt(record.id) < BigInt(known.id)) {
      breaks.set(name, record);
    }
    if (record.id === query.id) {
      wanted = name;
    }
  }
  const id = wanted === undefined ? query.id : breaks.get(wanted)?.id;
  const records = Array.from(breaks.values()).sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
  return auditPage(records.slice(-maxAuditRecords), { ...query, id });
}

/** How long the break removes dead waiters, ms. Later, the poll of a live waiter removes them. */
const breakTimeoutMs = 2_000;

/** The break of a lease, as the operator ordered it. */
interface OrderedBreak {
  readonly fencingToken: bigint;
  readonly reason: string;
  /** The note and the audit of each node; undefined: no node writes a record. */
  readonly record: { readonly note: string; readonly auditKey: string } | undefined;
}

/**
 * Breaks the lease with this fencing token on every node that has the lease, whatever number the node gave. Each node that breaks the
 * lease writes its record in the same script.
 * @returns on how many nodes the break ended the lease. Rejects with a `QuorumError` if too few nodes reply.
 */
async function breakOnNodes(
  nodeSet: NodeSet,
  view: QuorumLockView,
  keys: LockKeys,
  { fencingToken, reason, record }: OrderedBreak,
): Promise<number> {
  const grants = view.grantsOf(fencingToken);
  if (!grants) {
    return 0;
  }
  const { key } = view;
  const proposedFence = nodeSet.nextProposal();
  const votes = await Promise.all(
    grants.map(
      ({ node, name: grant }) =>
        new Promise<NodeVote>((resolve) => {
          const { server, name } = node;
          const failed = (error: unknown): void => {
            resolve({ node: name, vote: "error", latencyMs: null, reason: messageOf(error) });
          };
          server.perform({
            keys,
            args: withProposedFence(
              record
                ? ["recordedBreak", grant, server.channelKind, reason, record.note]
                : ["breakGrant", grant, server.channelKind, reason],
              proposedFence,
            ),
            auditKey: record?.auditKey,
            answered: ({ value }) => {
              const [isBroken, more] = value as unknown[];
              if (isBroken === "error") {
                failed(serverRefusal(String(more)));
                return;
              }
              if (Number(more) === 1) {
                // Dead waiters are queued before the live ones: the release of an unknown token removes them.
                const until = nodeSet.now() + breakTimeoutMs;
                node.releaseQueue.cleanUp({ key, keys, token: "-", entryTail: "", until, proposedFence });
              }
              resolve({
                node: name,
                vote: Number(isBroken) === 1 ? "granted" : "held",
                latencyMs: null,
                reason: null,
              });
            },
            failed,
          });
        }),
    ),
  );
  const broken = votes.filter(({ vote }) => vote === "granted").length;
  const unknown = votes.filter(({ vote }) => vote === "error").length;
  if (broken < nodeSet.majority && broken + unknown >= nodeSet.majority) {
    throw new QuorumError({ key, votes, outcome: "unknown", retryable: true });
  }
  return broken;
}

/** The break of one lease. */
interface BreakRequest {
  readonly key: string;
  readonly fencingToken: bigint;
  readonly reason: string;
  /** undefined: no record is written. */
  readonly note: BreakNote | undefined;
}

/** The operations for operators of a quorum. Each result is the state on a majority of the nodes. */
export class OperatorCalls {
  readonly #nodeSet: NodeSet;
  readonly #keySpace: KeySpace;
  readonly #budgetMs: number;

  /** @param budgetMs the longest time for one operation */
  constructor(nodeSet: NodeSet, keySpace: KeySpace, budgetMs: number) {
    this.#nodeSet = nodeSet;
    this.#keySpace = keySpace;
    this.#budgetMs = budgetMs;
  }

  async inspect(key: string): Promise<LockState> {
    return (await this.#view(key)).describe();
  }

  list(query: ListQuery): Promise<{ locks: LockState[]; cursor: string | null }> {
    return this.ready(undefined, () =>
      listByMajority(this.#nodeSet, this.#keySpace, query, (key) => this.#view(key)),
    );
  }

  /** @param random for an id that no other operator gives a record at the same time */
  async breakGrant({ key, fencingToken, reason, note }: BreakRequest, random: Random): Promise<BreakOutcome> {
    const view = await this.#view(key, (view) => !view.isUnresolved(fencingToken));
    const keys = this.#keySpace.keysOf(key);
    const auditId = note && quorumAuditId(this.#nodeSet, random);
    const record = auditId && {
      note: encodeRecordNote({ key, reason, ...note, id: auditId, fencingToken: fencingToken.toString() }),
      auditKey: this.#keySpace.auditKey(),
    };
    const order = { fencingToken, reason, record: record || undefined };
    const broken = await breakOnNodes(this.#nodeSet, view, keys, order);
    if (broken > 0 && broken < this.#nodeSet.majority) {
      // The holder releases a broken lease on all nodes, and its release may arrive at a node before the break.
      await this.#view(key, (view) => !view.isUnresolved(fencingToken) && !view.grantsOf(fencingToken));
    }
    return broken > 0 ? { isBroken: true, auditId } : { isBroken: false };
  }

  audit(query: AuditQuery): Promise<AuditPage> {
    return this.ready(undefined, () => readQuorumAudit(this.#nodeSet, this.#keySpace, query));
  }

  async checkFence(key: string, fencingToken: bigint): Promise<FenceState> {
    return (await this.#view(key, (view) => !view.isUnresolved(fencingToken))).compareFence(fencingToken);
  }

  /** The state of all nodes, with the reason if a node does not vote. */
  nodes(): Promise<NodeState[]> {
    return Promise.all(
      this.#nodeSet.nodes.map(async (node) => {
        await node.handshake().catch(() => undefined);
        const state = await node.server.state();
        const quarantine = this.#nodeSet.quarantineOf(node);
        return {
          ...state,
          quarantine: quarantine ? { reason: quarantine.reason, remainingMs: quarantine.remainingMs } : null,
        };
      }),
    );
  }

  /** Performs the action after the first handshake with a majority. */
  async ready<T>(key: string | undefined, action: () => Promise<T>): Promise<T> {
    if (!this.#nodeSet.isReady) {
      try {
        await this.#nodeSet.ready();
      } catch (error) {
        throw error instanceof QuorumError ? error.forKey(key) : error;
      }
    }
    return action();
  }

  #view(key: string, isEnough?: (view: QuorumLockView) => boolean): Promise<QuorumLockView> {
    const keys = this.#keySpace.keysOf(key);
    return this.ready(key, () => QuorumLockView.of(this.#nodeSet, key, keys, this.#budgetMs, isEnough));
  }
}
