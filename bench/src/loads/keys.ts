import type { KeyChoice } from "../run/protocol.ts";

/** Returns the function that names the next key of a task. */
export function chooserOf(keys: KeyChoice, random: () => number = Math.random): (task: number) => string {
  switch (keys.by) {
    case "task":
      return (task) => `task:${process.pid}:${task}`;
    case "acquisition": {
      let acquisition = 0;
      return () => `fresh:${process.pid}:${acquisition++}`;
    }
    case "name":
      return () => keys.name;
    case "zipf":
      return rankChooser(keys, random);
    case "turn": {
      let turn = 0;
      return () => `turn:${turn++ % keys.count}`;
    }
  }
}

/** Draws a rank by the inverse of the distribution: a binary search in the cumulative sums of the weights. */
function rankChooser(
  { name, count, exponent }: KeyChoice & { by: "zipf" },
  random: () => number,
): () => string {
  const sums = new Float64Array(count);
  let total = 0;
  for (let rank = 1; rank <= count; rank += 1) sums[rank - 1] = total += rank ** -exponent;
  return () => `${name}:${1 + firstAbove(sums, random() * total)}`;
}

/** The index of the first of the ascending numbers above `value`, or the last index if there is none. */
function firstAbove(ascending: Float64Array, value: number): number {
  let [low, high] = [0, ascending.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ascending[middle] ?? Infinity) > value) high = middle;
    else low = middle + 1;
  }
  return low;
}
