import { messageOf } from "../../runtime/error-message.ts";
import type { StoreFailure } from "../store/lease-store.ts";

const deadlock = 1213;
/** A missing table or procedure. */
const missing = new Set([1146, 1305]);
const procedureExists = 1304;
/** `SET TRANSACTION` within a transaction. Only a program that shares the client can have opened it. */
const inTransaction = 1568;

/**
 * Failures that pass. 1213: a deadlock, or a certification failure of Galera. 1205: a lock timeout. 1040, 1203: too many connections.
 * 1053: a shutdown. 1290, 1792, 1836: a read-only server. 1047: the node is not part of a Galera cluster.
 */
const transient = new Set([deadlock, 1205, 1040, 1203, 1053, 1290, 1792, 1836, 1047]);
/**
 * A call was interrupted by KILL QUERY, or by the time limit of a statement that a program has set for the connection (MariaDB, MySQL).
 * No handler of the procedure runs then, so its transaction stays open with its row locks.
 */
const interruptions = [1317, 1969, 3024];
/** The server may have executed the procedure: shutdown (1053), killed connection (1927, 3169), interruption. */
const unknownOutcome = new Set([1053, 1927, 3169, ...interruptions]);
/**
 * Another connection may run the procedure. 1100: `LOCK TABLES`. 1104: `max_join_size`. 1142, 1143, 1370: `SET ROLE`. 1792: read-only
 * transactions.
 */
const ofConnection = new Set([inTransaction, 1100, 1104, 1142, 1143, 1370, 1792]);
/** Errors of the network before a statement was sent. */
const notSent = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

export function mysqlFailure(error: unknown): StoreFailure {
  const { errno, code } = detailsOf(error);
  const message = `MySQL: ${messageOf(error)}`;
  if (isInTransaction(error)) {
    const cause = "the connection has an open transaction, which the program left or shares with the driver";
    return { message: `MySQL: ${cause}`, outcome: "none", retryable: true };
  }
  if (isServerError(errno)) {
    const isUnknown = unknownOutcome.has(errno);
    return {
      message,
      outcome: isUnknown ? "unknown" : "none",
      retryable: isUnknown || transient.has(errno),
    };
  }
  return {
    message,
    outcome: notSent.has(code) ? "none" : "unknown",
    retryable: !(error instanceof TypeError),
  };
}

export function isInTransaction(error: unknown): boolean {
  return detailsOf(error).errno === inTransaction;
}

/** The server refuses the call because of the state in which a program left the connection. */
export function isOfConnection(error: unknown): boolean {
  return ofConnection.has(detailsOf(error).errno);
}

export function isInterruption(error: unknown): boolean {
  return interruptions.includes(detailsOf(error).errno);
}

/** The server has rolled the transaction back in favour of another one. */
export function isDeadlock(error: unknown): boolean {
  return detailsOf(error).errno === deadlock;
}

export function isMissingSchema(error: unknown): boolean {
  return missing.has(detailsOf(error).errno);
}

export function isExistingProcedure(error: unknown): boolean {
  return detailsOf(error).errno === procedureExists;
}

/** The numbers of network errors are negative. */
function isServerError(errno: number): boolean {
  return errno >= 1000;
}

function detailsOf(error: unknown): { errno: number; code: string } {
  const { errno, code } = (typeof error === "object" && error !== null ? error : {}) as Row;
  return {
    errno: typeof errno === "number" ? errno : 0,
    code: typeof code === "string" ? code : "",
  };
}

type Row = { readonly errno?: unknown; readonly code?: unknown };
