import { ServerError, Status, type Reply } from "../reply.ts";

/** A Lua value: null is cjson.null, undefined is nil, and a table is a list or has one of the fields that Redis recognizes. */
export type Value = string | number | boolean | null | undefined | readonly Value[] | Fields;

export interface Fields {
  readonly [name: string]: Value;
}

/** Converts the reply of a command to the value that a script gets. */
export function valueOf(reply: Reply): Value {
  if (reply === null) {
    return false;
  } else if (reply instanceof ServerError) {
    return { err: reply.message };
  } else if (reply instanceof Status) {
    return { ok: reply.text };
  }
  return typeof reply === "object" ? reply.map(valueOf) : reply;
}

/** Converts the result of a script to Redis' reply: numbers lose their fractions, and true becomes 1. */
export function replyOf(value: Value): Reply {
  if (typeof value === "number") {
    return Math.trunc(value);
  } else if (typeof value === "string") {
    return value;
  } else if (typeof value !== "object" || value === null) {
    return value === true ? 1 : null;
  } else if (isList(value)) {
    return value.map(replyOf);
  }
  const { err, ok } = value as Readonly<Record<string, string>>;
  return err === undefined ? new Status(ok ?? "") : new ServerError(err);
}

function isList(value: readonly Value[] | Fields): value is readonly Value[] {
  return Array.isArray(value);
}
