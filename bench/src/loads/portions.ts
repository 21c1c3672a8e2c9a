const batchSize = 500;

/** Calls for all, some at once, so that a burst of thousands is not what is measured. */
export async function inBatches<T, R>(items: readonly T[], call: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let from = 0; from < items.length; from += batchSize) {
    results.push(...(await Promise.all(items.slice(from, from + batchSize).map(call))));
  }
  return results;
}
