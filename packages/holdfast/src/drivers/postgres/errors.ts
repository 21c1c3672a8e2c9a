import { messageOf } from "../../runtime/error-message.ts";
import type { StoreFailure } from "../store/lease-store.ts";

/**
 * SQLSTATE classes and codes of failures that pass: connection, resources, operator intervention, serialization, deadlock, lock
 * timeout, and a server that is a standby (25006).
 */
const transient = /^(08|53|57|40001|40P01|55P03|25006)/;
/**
 * The connection has an open transaction: 2D000 (a procedure of the driver cannot commit), 25P02 (the transaction has failed), 25001. Only
 * a program that shares the client can have opened it. Other connections have none.
 */
const inTransaction = new Set(["2D000", "25P02", "25001"]);
/** The server may have executed the statement before it ended the connection. */
const unknownOutcome = /^(08|57P0)/;
/** Errors of the network before a statement was sent. */
const notSent = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

export function postgresFailure(error: unknown): StoreFailure {
  const code = codeOf(error);
  if (isInTransaction(error)) {
    const cause = "the connection has an open transaction, which the program left or shares with the driver";
    return { message: `PostgreSQL: ${cause} (${messageOf(error)})`, outcome: "none", retryable: true };
  }
  const message = `PostgreSQL: ${messageOf(error)}`;
  if (/^[0-9A-Z]{5}$/.test(code)) {
    const outcome = unknownOutcome.test(code) ? "unknown" : "none";
    return { message, outcome, retryable: transient.test(code) };
  }
  return {
    message,
    outcome: notSent.has(code) ? "none" : "unknown",
    retryable: !(error instanceof TypeError),
  };
}

export function isInTransaction(error: unknown): boolean {
  return inTransaction.has(codeOf(error));
}

/**
 * Another connection may run the statement: this one is in a transaction, or has read-only transactions (25006), or a role without rights
 * (42501).
 */
export function isOfConnection(error: unknown): boolean {
  return isInTransaction(error) || ["25006", "42501"].includes(codeOf(error));
}

/** The schema or its functions are missing. */
export function isMissingSchema(error: unknown): boolean {
  return ["3F000", "42883"].includes(codeOf(error));
}

/** The error of the function `assert_held`. */
export function isLeaseLost(error: unknown): boolean {
  return codeOf(error) === "HF001" || messageOf(error).includes("holdfast: the lease of");
}

/** The code of an error, or of its cause, because ORMs wrap the errors of clients. */
function codeOf(error: unknown): string {
  for (let one = error, depth = 0; typeof one === "object" && one !== null && depth < 5; depth += 1) {
    const { code, cause } = one as { code?: unknown; cause?: unknown };
    if (typeof code === "string") {
      return code;
    }
    one = cause;
  }
  return "";
}
