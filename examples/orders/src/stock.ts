import { open, writeFile, type FileHandle } from "node:fs/promises";

import { maxArticleLength, type Order } from "./orders.ts";

/** The parts of a lease that the stock needs: the check before a write, and the number by which the stock rejects a late holder. */
export interface Guard {
  readonly fencingToken: bigint;
  throwIfLost(): void;
}

export interface Level {
  readonly remaining: number;
  /** The fencing token of the last holder that wrote; 0: no holder yet, or writes without a lock. */
  readonly fence: bigint;
}

/**
 * Takes an order's units from the stock: reads, computes and writes. Another process may write between the read and the write, so
 * only a lock on the article makes this correct. No artificial delay provokes the race.
 *
 * A server would compare the fence within its write. A plain file cannot, so this check does not cover all late holders. It only
 * shortens the time in which a holder that has lost its lease can still write.
 */
export async function reserveStock(
  stock: StockFile,
  order: Order,
  guard?: Guard,
): Promise<"accepted" | "refused"> {
  const { remaining, fence } = await stock.read(order.article);
  if (guard && guard.fencingToken < fence) {
    throw new Error(`Order ${order.order} came with fencing token ${guard.fencingToken}, after ${fence}`);
  }
  if (remaining < order.units) return "refused";
  guard?.throwIfLost();
  await stock.write(order.article, {
    remaining: remaining - order.units,
    fence: guard?.fencingToken ?? fence,
  });
  return "accepted";
}

const remainingDigits = 10;
const fenceDigits = 20;
const recordLength = maxArticleLength + 1 + remainingDigits + 1 + fenceDigits + 1;

/**
 * One file for all articles, with a line of fixed width for each, which is read and written in place. A holder of an article's lock
 * touches only that line, so a lock for each article suffices. Rewriting the whole file would need one lock for all. Numbers are
 * padded with zeros, so that the line is a valid number even if two writes without a lock mix.
 */
export class StockFile implements AsyncDisposable {
  readonly #file: FileHandle;
  readonly #lines: ReadonlyMap<string, number>;

  private constructor(file: FileHandle, articles: Iterable<string>) {
    this.#file = file;
    this.#lines = new Map([...articles].map((article, line) => [article, line]));
  }

  static async create(path: string, initial: ReadonlyMap<string, number>): Promise<StockFile> {
    const records = [...initial].map(([article, remaining]) => record(article, { remaining, fence: 0n }));
    await writeFile(path, records.join(""), { flag: "wx" });
    return StockFile.open(path, initial.keys());
  }

  /** @param articles in the order of the creation of the file */
  static async open(path: string, articles: Iterable<string>): Promise<StockFile> {
    return new StockFile(await open(path, "r+"), articles);
  }

  async read(article: string): Promise<Level> {
    const buffer = Buffer.alloc(recordLength);
    const { bytesRead } = await this.#file.read(buffer, 0, recordLength, this.#position(article));
    const [name, left, fence] = buffer.toString("latin1", 0, bytesRead).trimEnd().split(/ +/);
    if (bytesRead !== recordLength || name !== article || left === undefined || fence === undefined) {
      throw new Error(
        `Expected the record of ${article} in the stock file, got ${JSON.stringify(buffer.toString())}`,
      );
    }
    return { remaining: Number(left), fence: BigInt(fence) };
  }

  async write(article: string, level: Level): Promise<void> {
    const { bytesWritten } = await this.#file.write(
      record(article, level),
      this.#position(article),
      "latin1",
    );
    if (bytesWritten !== recordLength)
      throw new Error(`Only ${bytesWritten} bytes of ${article} were written`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }

  #position(article: string): number {
    const line = this.#lines.get(article);
    if (line === undefined) throw new Error(`No article ${article} in the stock file`);
    return line * recordLength;
  }
}

function record(article: string, { remaining, fence }: Level): string {
  const columns = [
    article.padEnd(maxArticleLength),
    `${remaining}`.padStart(remainingDigits, "0"),
    `${fence}`.padStart(fenceDigits, "0"),
  ];
  return `${columns.join(" ")}\n`;
}
