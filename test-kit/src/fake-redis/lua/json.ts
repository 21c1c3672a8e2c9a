import { fromBytes, toBytes } from "../bytes.ts";
import type { Value } from "./value.ts";

/** Decodes like cjson.decode. @param text a text of bytes */
export function decodeJson(text: string): Value {
  return JSON.parse(fromBytes(text), (_, value: Value) =>
    typeof value === "string" ? toBytes(value) : value,
  ) as Value;
}

/** Encodes strings and lists of strings like cjson.encode. @returns a text of bytes */
export function encodeJson(value: Value): string {
  if (Array.isArray(value)) {
    return value.length === 0 ? "{}" : `[${value.map(encodeJson).join(",")}]`;
  } else if (typeof value !== "string") {
    throw new TypeError(`Expected strings to encode as JSON, got ${JSON.stringify(value)}`);
  }
  return JSON.stringify(value).replaceAll("/", "\\/").replaceAll("\u007f", "\\u007f");
}
