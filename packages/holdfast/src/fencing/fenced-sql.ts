import { checkOptionNames, invalidValue } from "../option-checks.ts";
import { tokenText } from "./outcome.ts";

export interface FencedOptions {
  /**
   * The placeholder of the token: `$1` to `$65535` for PostgreSQL, `?` for MySQL and MariaDB.
   * @defaultValue "?"
   */
  readonly placeholder?: `$${number}` | "?" | undefined;
  /**
   * The column with the largest token so far: BIGINT NOT NULL DEFAULT 0. The name is not quoted.
   * @defaultValue "fence"
   */
  readonly column?: string | undefined;
}

/** The parts of an UPDATE that a fencing token guards. */
export interface FencedSql {
  /** For the SET clause: the column gets the token. It has one placeholder. */
  readonly assignment: string;
  /** For the WHERE clause: the row has seen no larger token. It has one placeholder. */
  readonly condition: string;
  /** The token, for each placeholder. A text, because not every client sends a bigint. */
  readonly parameter: string;
}

/**
 * The parts of an UPDATE that refuses a late holder: a row changes only if it has seen no larger fencing token.
 *
 * The UPDATE must contain both parts. If the row exists and no row matched, the token is stale. The database compares
 * and writes in one step, so the guard needs no transaction.
 *
 * @example
 * ```ts
 * const fence = fenced(lease.fencingToken, { placeholder: "$3" });
 * const { rowCount } = await pool.query(
 *   `UPDATE account SET balance = $1, ${fence.assignment} WHERE id = $2 AND ${fence.condition}`,
 *   [balance, id, fence.parameter],
 * );
 * ```
 * @throws TypeError or RangeError for a token above 2^63 − 1, or an invalid option
 */
export function fenced(fencingToken: bigint, options: FencedOptions = {}): FencedSql {
  checkOptionNames(options, ["placeholder", "column"]);
  const { placeholder = "?", column = "fence" } = options;
  if (placeholder !== "?" && !/^\$[1-9]\d{0,4}$/.test(placeholder)) {
    throw invalidValue("placeholder", 'a string "?" or "$1" to "$65535"', placeholder);
  }
  if (typeof column !== "string" || !/^[A-Za-z_]\w{0,62}$/.test(column)) {
    throw invalidValue("column", "a string of letters, digits and `_`, 63 at most", column);
  }
  // The cast is needed in MySQL, which compares a number with a text as floating-point numbers.
  const value = placeholder === "?" ? "CAST(? AS SIGNED)" : `CAST(${placeholder} AS BIGINT)`;
  return {
    assignment: `${column} = ${value}`,
    condition: `${column} <= ${value}`,
    parameter: tokenText(fencingToken),
  };
}
