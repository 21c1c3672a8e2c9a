import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import type { Order } from "./orders.ts";

const seed = 20_190_617;
const orderCount = 2_000;
const maxUnitsPerOrder = 5;
const articles = [
  "hammer nail-box screw-box drill saw chisel plane file vice anvil",
  "rope-10m chain-5m pulley shackle hook ladder bucket shovel rake wheelbarrow",
].flatMap((names) => names.split(" "));

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(new URL("../orders.ndjson", import.meta.url), generateOrders());
}

/** Generates the committed `orders.ndjson`, byte for byte. It uses integers only, because these are rounded nowhere. */
export function generateOrders(): string {
  const random = randomIntegers(seed);
  const lots = popularity();
  let text = "";
  for (let order = 1; order <= orderCount; order++) {
    const article = articles[lots[random(lots.length)] ?? 0] ?? "";
    text += `${JSON.stringify({ order, article, units: 1 + random(maxUnitsPerOrder) } satisfies Order)}\n`;
  }
  return text;
}

/** A few articles are ordered much more often than the others, as in a real shop. Their locks are contended. */
function popularity(): number[] {
  return articles.flatMap((_, rank) => Array.from({ length: Math.floor(240 / (rank + 3)) }, () => rank));
}

/** mulberry32 (Tommy Ettinger, public domain), because it is small and gives the same numbers on every platform. */
function randomIntegers(start: number): (below: number) => number {
  let state = start;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}
