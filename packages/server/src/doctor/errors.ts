import { inspect } from "node:util";

/** No server of the URL replied. The message has the failure of each server. */
export class UnreachableError extends Error {
  override name = "UnreachableError";
}

/** The message of an error, without its stack. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : inspect(error);
}
