const count = 4;

/** The keys that stand for one where several are locked at once. */
export function severalOf(key: string): string[] {
  return Array.from({ length: count }, (_, index) => `${key}:${index}`);
}

export const severalText: string = `${count} keys at once`;
