import { maxAuditRecords, type AuditRecord, type BreakNote } from "../../operator/audit.ts";
import { encodeNote, recordOf } from "../store/audit-note.ts";
import type { Gateway } from "./gateway.ts";
import { decode, encode, startingWith, type Keys } from "./keys.ts";
import type { KeyValue, RangeReply, TxnReply } from "./kv.ts";

/** The value of a record. */
interface RecordValue {
  readonly at: number;
  readonly note: string;
}

/** A reply of the gateway to etcd has at most 4 MB, and a record at most 13 kB. */
const pageSize = 200;
/** How many old records are removed at once. A transaction has at most 128 operations. */
const maxRemoved = 100;

/**
 * The records of breaks. A record is written in the transaction of its break, whose revision is its id. Its key names the grant, so a
 * grant has at most one record.
 */
export class EtcdAudit {
  readonly #gateway: Gateway;
  readonly #keys: Keys;

  constructor(gateway: Gateway, keys: Keys) {
    this.#gateway = gateway;
    this.#keys = keys;
  }

  /** The operations that write a record and count all records, for a transaction. */
  requests(key: string, fencingToken: bigint, reason: string, note: BreakNote): object[] {
    const value: RecordValue = { at: this.#gateway.serverTime(), note: encodeNote(reason, note) };
    const record = encode(this.#keys.record(key, fencingToken));
    return [
      { request_put: { key: record, value: encode(JSON.stringify(value)) } },
      { request_range: { ...startingWith(this.#keys.records), count_only: true } },
    ];
  }

  /** Removes the oldest records. @param reply a transaction whose last operations are {@link EtcdAudit.requests} */
  async trim({ responses = [] }: TxnReply): Promise<void> {
    if (Number(responses.at(-1)?.response_range?.count ?? 0) <= maxAuditRecords) {
      return;
    }
    const oldest = await this.#range({ sort_target: "CREATE", sort_order: "ASCEND", keys_only: true });
    const excess = Number(oldest.count ?? 0) - maxAuditRecords;
    const removed = (oldest.kvs ?? []).slice(0, Math.max(0, Math.min(maxRemoved, excess)));
    if (removed.length > 0) {
      const success = removed.map(({ key }) => ({ request_delete_range: { key } }));
      await this.#gateway.call("kv/txn", { success });
    }
  }

  /** All records, oldest first. */
  async read(): Promise<AuditRecord[]> {
    const found: KeyValue[] = [];
    for (let after: string | undefined; ;) {
      const { kvs = [], more } = await this.#range(after === undefined ? {} : { key: encode(`${after}\0`) });
      found.push(...kvs);
      if (more !== true) {
        return found
          .sort((a, b) => (BigInt(a.create_revision) < BigInt(b.create_revision) ? -1 : 1))
          .map((kv) => this.#recordOf(kv));
      }
      after = decode(kvs.at(-1)?.key);
    }
  }

  #recordOf({ key: name, value, create_revision: id }: KeyValue): AuditRecord {
    const { at, note } = JSON.parse(decode(value)) as RecordValue;
    return recordOf({ id, at, note, ...this.#keys.grantOfRecord(decode(name)) });
  }

  #range(options: object): Promise<RangeReply> {
    const range = { ...startingWith(this.#keys.records), limit: String(pageSize), ...options };
    return this.#gateway.call<RangeReply>("kv/range", range);
  }
}
