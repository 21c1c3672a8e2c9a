import { QuorumError } from "../../../../errors.ts";
import {
  auditPage,
  maxAuditRecords,
  type AuditPage,
  type AuditQuery,
  type AuditRecord,
} from "../../../../operator/audit.ts";
import type { Random } from "../../../../runtime/random.ts";
import { parseAuditRecord } from "../../protocol/audit-record.ts";
import type { KeySpace } from "../../protocol/keys.ts";
import { messageOf } from "../../server/errors.ts";
import type { NodeSet } from "../node-set.ts";

const randomDigits = 5;

/** The id of a record on all nodes: the time in microseconds that the nodes agree on, and random digits. */
export function quorumAuditId(nodeSet: NodeSet, random: Random): string {
  const digits = Math.floor(random.nextFloat() * 10 ** randomDigits);
  return nodeSet.nextProposal() + String(digits).padStart(randomDigits, "0");
}

/**
 * Reads the audits of a majority of the nodes. Each node has records of the breaks on that node. Records of one grant by one operator are
 * one break, because a repeat may have completed it on further nodes. The page has the record with the smallest id.
 */
export async function readQuorumAudit(
  nodeSet: NodeSet,
  keySpace: KeySpace,
  query: AuditQuery,
): Promise<AuditPage> {
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
