import type { ListQuery } from "../../../../driver.ts";
import { QuorumError } from "../../../../errors.ts";
import type { FenceState, LockState, NodeState } from "../../../../lock-state.ts";
import type { AuditPage, AuditQuery, BreakNote, BreakOutcome } from "../../../../operator/audit.ts";
import type { Random } from "../../../../runtime/random.ts";
import { encodeNote } from "../../protocol/audit-record.ts";
import type { KeySpace } from "../../protocol/keys.ts";
import { quorumAuditId, readQuorumAudit } from "./audit.ts";
import { breakOnNodes } from "./break.ts";
import type { NodeSet } from "../node-set.ts";
import { listByMajority } from "./list.ts";
import { QuorumLockView } from "./lock-view.ts";

/** The break of one lease. */
export interface BreakRequest {
  readonly key: string;
  readonly fencingToken: bigint;
  readonly reason: string;
  /** undefined: no record is written. */
  readonly note: BreakNote | undefined;
}

/** The operations for operators of a quorum. Each result is the state on a majority of the nodes. */
export class OperatorApi {
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
      note: encodeNote({ key, reason, ...note, id: auditId, fencingToken: fencingToken.toString() }),
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
