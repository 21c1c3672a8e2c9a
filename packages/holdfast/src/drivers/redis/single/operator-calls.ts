import { auditPage, maxAuditRecords, type AuditRecord } from "../../../operator/audit.ts";
import type { AuditPage, AuditQuery, BreakNote, BreakOutcome } from "../../../operator/audit.ts";
import type { Random } from "../../../runtime/random.ts";
import { encodeRecordNote, parseAuditRecord } from "../protocol/audit-record.ts";
import type { KeySpace } from "../protocol/keys.ts";
import { requestOnce } from "../server/perform-once.ts";
import type { ServerDirectory } from "./server-directory.ts";

/** The share of breaks after which the old records of a cluster are removed. */
const trimShare = 0.01;

/**
 * Breaks grants for operators. The script of a break also writes its record. One server has one audit. In a cluster each slot has an
 * audit of its own, because a script writes only in the slot of its lock.
 */
export class OperatorCalls {
  readonly #servers: ServerDirectory;
  readonly #keySpace: KeySpace;
  readonly #random: Random;

  constructor(servers: ServerDirectory, keySpace: KeySpace, random: Random) {
    this.#servers = servers;
    this.#keySpace = keySpace;
    this.#random = random;
  }

  /** @param grantNext called if the lock is free, and dead waiters precede the next live one */
  async breakGrant(
    { key, fencingToken, reason, note }: BreakRequest,
    grantNext: () => void,
  ): Promise<BreakOutcome> {
    const keys = this.#keySpace.keysOf(key);
    const server = this.#servers.serverFor(keys);
    if (!server.isTimeKnown) {
      await server.handshake(); // only then is the kind of the holder's channel known
    }
    const args = [fencingToken.toString(), server.breakChannel, reason];
    const slot = this.#servers.auditSlotOf(keys);
    const operation = note
      ? {
          args: ["recordedBreak", ...args, encodeRecordNote({ key, reason, ...note })],
          auditKey: this.#keySpace.auditKey(slot?.tag),
        }
      : { args: ["breakGrant", ...args] };
    const reply = await requestOnce(server, { key, keys, ...operation });
    const [isBroken, more, id] = reply.value as unknown[];
    if (Number(more) === 1) {
      grantNext();
    }
    if (Number(isBroken) !== 1 || !note) {
      return { isBroken: Number(isBroken) === 1 };
    }
    if (slot && this.#random.nextFloat() < trimShare) {
      await this.#trim().catch(() => undefined); // a later break removes the records
    }
    return { isBroken: true, auditId: withSlot(String(id), slot?.slot) };
  }

  async read(query: AuditQuery): Promise<AuditPage> {
    return auditPage((await this.#records()).slice(-maxAuditRecords), query);
  }

  /** All records, oldest first. */
  async #records(): Promise<AuditRecord[]> {
    const audits = await this.#servers.readAudits(this.#keySpace, "0");
    const records = audits.flatMap(({ slot, members }) =>
      members
        .map((member) => parseAuditRecord(String(member)))
        .filter((record) => record !== undefined)
        .map((record) => ({ ...record, id: withSlot(record.id, slot) })),
    );
    return audits.length > 1 ? records.sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1)) : records;
  }

  async #trim(): Promise<void> {
    const oldest = (await this.#records()).at(-maxAuditRecords);
    if (oldest) {
      await this.#servers.readAudits(this.#keySpace, oldest.id.slice(0, -slotDigits));
    }
  }
}

interface BreakRequest {
  readonly key: string;
  readonly fencingToken: bigint;
  readonly reason: string;
  readonly note: BreakNote | undefined;
}

const slotDigits = 5;

/** The slot distinguishes records of one microsecond on several servers of a cluster. */
function withSlot(id: string, slot: number | undefined): string {
  return slot === undefined ? id : id + String(slot).padStart(slotDigits, "0");
}
