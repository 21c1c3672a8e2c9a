/**
 * The patterns of Redis: `*`, `?`, `[a-c]`, `[^a-c]`, and `\\` before a literal character. Both texts are texts of bytes, so `?`
 * matches one byte.
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
