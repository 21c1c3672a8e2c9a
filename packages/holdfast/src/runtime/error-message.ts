/**
 * The message of an error, never empty. Node throws an `AggregateError` for a host with several addresses: it has an empty message and an
 * error for each address.
 */
export function messageOf(error: unknown): string {
  if (typeof error !== "object" || error === null) {
    return String(error);
  }
  const { message, errors, code, name } = error as Partial<
    Record<"message" | "errors" | "code" | "name", unknown>
  >;
  const each = Array.isArray(errors) ? Array.from(new Set(errors.map(messageOf))).join(", ") : "";
  const [first] = [message, each, code, name].filter((text) => typeof text === "string" && text !== "");
  return (first as string | undefined) ?? Object.prototype.toString.call(error);
}
