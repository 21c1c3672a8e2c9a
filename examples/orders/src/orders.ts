import { readFile } from "node:fs/promises";

import { UsageError } from "./options.ts";

export interface Order {
  readonly order: number;
  readonly article: string;
  readonly units: number;
}

/** The limits for the fixed width of a record in the stock file. */
export const maxArticleLength = 16;
const maxUnits = 1_000;

/**
 * Reads one order from each line of `file`.
 * @throws {UsageError} with the file, the line and its content
 */
export async function readOrders(file: string): Promise<readonly Order[]> {
  const orders: Order[] = [];
  for (const [index, line] of (await read(file)).split("\n").entries()) {
    if (line.trim() !== "") orders.push(parseOrder(line, `line ${index + 1} of ${file}`));
  }
  if (orders.length > 0) return orders;
  throw new UsageError(`Expected \`--orders\` to hold at least one order, got none in "${file}"`);
}

/**
 * The stock covers three quarters of the ordered units of each article. So every article runs out, and a lost update sells stock
 * twice.
 */
export function initialStock(orders: readonly Order[]): Map<string, number> {
  const articles = [...unitsByArticle(orders)].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return new Map(articles.map(([article, units]) => [article, Math.floor((units * 3) / 4)]));
}

export function unitsByArticle(orders: readonly Order[]): Map<string, number> {
  const sums = new Map<string, number>();
  for (const { article, units } of orders) sums.set(article, (sums.get(article) ?? 0) + units);
  return sums;
}

async function read(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(`Expected \`--orders\` to be a readable file, got "${file}" (${why})`, {
      cause: error,
    });
  }
}

function parseOrder(line: string, where: string): Order {
  const value = parseJson(line);
  if (isOrder(value)) return { order: value.order, article: value.article, units: value.units };
  const shape =
    `{"order":1,"article":"hammer","units":2} with an article of 1 to ${maxArticleLength} of a-z, 0-9 and -` +
    ` and 1 to ${maxUnits} units`;
  throw new UsageError(`Expected ${where} to be an order like ${shape}, got ${line.slice(0, 200)}`);
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function isOrder(value: unknown): value is Order {
  if (typeof value !== "object" || value === null) return false;
  const { order, article, units } = value as Partial<Record<keyof Order, unknown>>;
  return (
    isCount(order) && typeof article === "string" && isArticle(article) && isCount(units) && units <= maxUnits
  );
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 1;
}

function isArticle(value: string): boolean {
  return value.length <= maxArticleLength && /^[a-z0-9-]+$/.test(value);
}
