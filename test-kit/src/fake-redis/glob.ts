/**
 * Redis' own pattern language: `*`, `?`, `[a-c]`, `[^a-c]`, and `\\` before what is meant literally. It knows bytes, not
 * characters: `?` is one byte, and so are the characters of both texts.
 */
export function globMatcher(pattern: string): (text: string) => boolean {
  const parts = pattern.match(/\\[^]|\[(?:\\[^]|[^\]])*\]?|[^]/g) ?? [];
  const expression = new RegExp(`^${parts.map(translate).join("")}$`);
  return (text) => expression.test(text);
}

function translate(part: string): string {
  if (part === "*") {
    return "[^]*";
  } else if (part === "?") {
    return "[^]";
  } else if (part.length > 2 && part.startsWith("[") && part.endsWith("]")) {
    return part;
  }
  return literal(part.length > 1 && part.startsWith("\\") ? part.slice(1) : part);
}

function literal(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}
