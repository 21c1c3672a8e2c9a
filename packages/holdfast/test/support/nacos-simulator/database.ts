import { createHash } from "node:crypto";

/** A configuration, as the table `config_info` has it. */
interface Row {
  readonly namespace: string;
  readonly group: string;
  readonly dataId: string;
  content: string;
  md5: string;
}

type Publication = Pick<Row, "namespace" | "group" | "dataId" | "content"> & {
  readonly casMd5: string;
};

/** The database of a simulated cluster. */
export class Database {
  /**
   * Whether the database is the embedded one, whose insertion of a row that exists seems to succeed. It runs statements one after
   * the other.
   */
  readonly isEmbedded: boolean;
  /** How many rows the history has. Each write adds one. */
  history = 0;
  readonly #rows = new Map<string, Row>();

  constructor(isEmbedded: boolean) {
    this.isEmbedded = isEmbedded;
  }

  find(namespace: string, group: string, dataId: string): Row | undefined {
    return this.#rows.get(JSON.stringify([namespace, group, dataId]));
  }

  /** The rows whose `dataId` fits a pattern. In the pattern of SQL, `_` stands for one character and `%` for any number. */
  search(namespace: string, group: string, pattern: string): Row[] {
    const expression = Array.from(pattern.replaceAll("*", "%"))
      .map((one) => ({ "%": ".*", _: "." })[one] ?? one.replace(/[.\\^$|?*+()[\]{}]/, "\\$&"))
      .join("");
    return [...this.#rows.values()].filter(
      (row) =>
        row.namespace === namespace && row.group === group && new RegExp(`^${expression}$`).test(row.dataId),
    );
  }

  /**
   * Replaces the content if it has the expected MD5, or inserts the row.
   * @param existed whether the row existed at the look before this statement
   * @returns whether the server reports a success
   */
  publish({ namespace, group, dataId, content, casMd5 }: Publication, existed: boolean): boolean {
    const row = this.find(namespace, group, dataId);
    const md5 = createHash("md5").update(content).digest("hex");
    if (!existed) {
      if (row === undefined) {
        this.#rows.set(JSON.stringify([namespace, group, dataId]), {
          namespace,
          group,
          dataId,
          content,
          md5,
        });
        this.history += 1;
      }
      return row === undefined || this.isEmbedded;
    }
    if (row?.md5 !== casMd5) {
      return false;
    }
    Object.assign(row, { content, md5 });
    this.history += 1;
    return true;
  }

  /** Deletes a configuration, as an operator does. */
  delete(namespace: string, group: string, dataId: string): void {
    this.#rows.delete(JSON.stringify([namespace, group, dataId]));
  }
}
