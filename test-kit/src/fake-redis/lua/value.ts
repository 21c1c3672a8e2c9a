import { ServerError, Status, type Reply } from "../reply.ts";

/** A Lua value: null is cjson.null, undefined is nil, and a table is a list, or what Redis knows by one of its fields. */
export type Value = string | number | boolean | null | undefined | readonly Value[] | Fields;

export interface Fields {
  readonly [name: string]: Value;
}

/** As scripts get what a command answers. */
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

/** As Redis answers what a script returns: numbers lose their fractions, and true is 1. */
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
