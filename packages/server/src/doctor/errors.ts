import { inspect } from "node:util";

/** No server of the URL replied. The message has the failure of each server. */
export class UnreachableError extends Error {
  override name = "UnreachableError";
}

/** The message of an error, without its stack. For a host with several addresses, Node's error has a message for each address only. */
export function errorMessage(error: unknown): string {
  if (!(error instanceof Error)) {
    return inspect(error);
  }
  const { errors = [] } = error as Partial<AggregateError>;
  return error.message || errors.map(errorMessage).join(", ") || error.name;
}
