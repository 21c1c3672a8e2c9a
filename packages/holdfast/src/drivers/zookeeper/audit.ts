import { maxAuditRecords, type AuditRecord } from "../../operator/audit.ts";
import { encodeNote, recordOf } from "../store/audit-note.ts";
import type { BreakNote } from "../../operator/audit.ts";
import { orMissing, type LockNodes } from "./lock-nodes.ts";
import type { Paths } from "./paths.ts";
import { create, getChildren, getData, type Access, type Operation } from "./wire/operations.ts";
import type { Session } from "./wire/session.ts";

interface AuditHost {
  readonly session: Session;
  readonly paths: Paths;
  readonly access: Access;
  readonly nodes: LockNodes;
  /** Creates the persistent nodes of the driver. */
  readonly createParents: () => Promise<void>;
}

/** The data of a record's node. */
interface RecordValue {
  readonly key: string;
  readonly fencingToken: string;
  readonly note: string;
}

/** How many old records are removed at once. */
const maxRemoved = 100;

/** The records of breaks. The node of a record is created in the transaction of its break, and its sequence number is its id. */
export class AuditNodes {
  readonly #host: AuditHost;
  #hasParent = false;

  constructor(host: AuditHost) {
    this.#host = host;
  }

  /** The operation that creates a record. */
  async record(
    key: string,
    fencingToken: bigint,
    reason: string,
    note: BreakNote,
  ): Promise<Operation<{ path: string }>> {
    if (!this.#hasParent) {
      await this.#host.createParents();
      this.#hasParent = true;
    }
    const value: RecordValue = {
      key,
      fencingToken: fencingToken.toString(),
      note: encodeNote(reason, note),
    };
    const { paths, access } = this.#host;
    return create(paths.record, JSON.stringify(value), "persistent-sequential", access);
  }

  /** A transaction has failed because of a missing node, which may be the parent of the records. */
  parentMayBeMissing(): void {
    this.#hasParent = false;
  }

  /** All records, oldest first. A record that is removed now may be missing. */
  async read(): Promise<AuditRecord[]> {
    const { session } = this.#host;
    const found = await Promise.all(
      (await this.#paths()).map(async (path) => {
        const node = await orMissing(session.request(getData(path)), undefined);
        return node && { path, ...node };
      }),
    );
    return found
      .filter((node) => node !== undefined)
      .map(({ path, data, stat }) => {
        const { key, fencingToken, note } = JSON.parse(data) as RecordValue;
        const id = this.#host.paths.idOf(path) as string;
        return recordOf({ id, at: stat.createdAt, key, fencingToken: BigInt(fencingToken), note });
      });
  }

  /** Removes the oldest records. */
  async trim(): Promise<void> {
    const paths = await this.#paths();
    const excess = Math.min(maxRemoved, paths.length - maxAuditRecords);
    if (excess > 0) {
      await this.#host.nodes.removeAll(paths.slice(0, excess));
    }
  }

  /** The paths of all records, oldest first. */
  async #paths(): Promise<string[]> {
    const { session, paths } = this.#host;
    const names = await orMissing(session.freshly(getChildren(paths.audit)), []);
    return names
      .map((name) => `${paths.audit}/${name}`)
      .filter((path) => paths.idOf(path) !== undefined)
      .sort();
  }
}
