import { invalidValue } from "../option-checks.ts";

/** The number of groups is limited, because each group is an attribute of the metrics. The number of keys is not. */
const maxGroups = 200;

/**
 * The groups of keys: prefixes, each of which is a group, or a function from a key to its group. A key without a prefix belongs to the
 * group of the part before its first `:`. After 200 groups, further keys belong to `other`.
 */
export type Groups = readonly string[] | ((key: string) => string);

/** Maps keys to groups. */
export class KeyGroups {
  /** The groups that are known before the first key. */
  readonly known: readonly string[];
  readonly #groupOf: (key: string) => string;
  readonly #seen: Set<string>;

  /** @throws {TypeError} */
  constructor(groups: Groups = []) {
    if (typeof groups !== "function" && !Array.isArray(groups)) {
      throw invalidValue("groups", "an array of prefixes, or a function", groups);
    }
    this.known = typeof groups === "function" ? [] : groups.slice(0, maxGroups);
    this.#groupOf = typeof groups === "function" ? groups : (key) => groupByPrefix(this.known, key);
    this.#seen = new Set(this.known);
  }

  /** The group of a key; `other` if the key's group would be one too many. */
  of(key: string): string {
    const group = this.#groupOf(key);
    if (!this.#seen.has(group)) {
      if (this.#seen.size >= maxGroups) {
        return "other";
      }
      this.#seen.add(group);
    }
    return group;
  }
}

function groupByPrefix(prefixes: readonly string[], key: string): string {
  const colon = key.indexOf(":");
  return prefixes.find((prefix) => key.startsWith(prefix)) ?? (colon > 0 ? key.slice(0, colon) : "none");
}
