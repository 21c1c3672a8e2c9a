/** The number of groups is limited, because each group is a label of the metrics. The number of keys is not. */
const maxGroups = 200;

/** Maps keys to groups, the labels of the metrics. */
export class KeyGroups {
  readonly #prefixes: readonly string[];
  readonly #known = new Set<string>();

  /** @param prefixes each is a group; a key belongs to the first prefix that matches */
  constructor(prefixes: readonly string[]) {
    this.#prefixes = prefixes;
  }

  /** The first matching prefix, or the part before the first `:`. With too many groups, `other`. */
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
