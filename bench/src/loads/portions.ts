const portionSize = 500;

/** Calls for all, some at once, so that a burst of thousands is not what is measured. */
export async function inPortions<T, R>(all: readonly T[], call: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let from = 0; from < all.length; from += portionSize) {
    results.push(...(await Promise.all(all.slice(from, from + portionSize).map(call))));
  }
  return results;
}
