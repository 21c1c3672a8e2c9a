const batchSize = 500;

/** Calls `call` for all items in batches, so that no burst of thousands of calls is measured. */
export async function inBatches<T, R>(items: readonly T[], call: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let from = 0; from < items.length; from += batchSize) {
    results.push(...(await Promise.all(items.slice(from, from + batchSize).map(call))));
  }
  return results;
}
