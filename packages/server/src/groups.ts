/** Keys may be as many as there are orders; their groups may not. */
const maxGroups = 200;

/** Puts keys into groups, by which metrics tell them apart. */
export class KeyGroups {
  readonly #prefixes: readonly string[];
  readonly #known = new Set<string>();

  /** @param prefixes groups of their own: a key belongs to the first that it begins with */
  constructor(prefixes: readonly string[]) {
    this.#prefixes = prefixes;
  }

  /** The first prefix that fits, else what stands before the first `:`. When there are too many groups, `other`. */
  of(key: string): string {
    const colon = key.indexOf(":");
    const group =
      this.#prefixes.find((prefix) => key.startsWith(prefix)) ?? (colon > 0 ? key.slice(0, colon) : "none");
    if (!this.#known.has(group)) {
      if (this.#known.size >= maxGroups) {
        return "other";
      }
      this.#known.add(group);
    }
    return group;
  }
}
