const count = 4;

/** The keys that a lock of several keys uses in place of one key. */
export function severalOf(key: string): string[] {
  return Array.from({ length: count }, (_, index) => `${key}:${index}`);
}

export const severalText: string = `${count} keys at once`;
