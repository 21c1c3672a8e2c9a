import { absent, flags, numbersOfLink, phases, rounds, type StateLayout } from "./state-layout.ts";

/**
 * Removes from a state what no longer has an effect. Of an attempt without a lease only steps that may still take effect remain. Fencing
 * numbers are compared only within a node, so they are renumbered from 1, in the same order.
 */
export function renumber(layout: StateLayout): void {
  for (let a = 0; a < layout.attempts; a += 1) {
    if (layout.phase(a) === phases.past) {
      clearUnneeded(layout, a);
    }
  }
  for (let n = 0; n < layout.nodes; n += 1) {
    renumberNode(layout, n);
  }
}

function clearUnneeded(layout: StateLayout, a: number): void {
  layout.setRound(a, rounds.none);
  layout.setBegunSince(a, 0);
  layout.setOvertaken(a, false);
  for (let n = 0; n < layout.nodes; n += 1) {
    layout.clear(a, n, ~flags.refill);
    const from = layout.numbersFrom(a, n);
    layout.bytes.fill(0, from, from + numbersOfLink);
  }
}

function renumberNode(layout: StateLayout, n: number): void {
  const isHeld = layout.holder(n) > 0;
  let used = isHeld ? 1 << layout.fence(n) : 0;
  for (let a = 0; a < layout.attempts; a += 1) {
    const from = layout.numbersFrom(a, n);
    for (let offset = from; offset < from + numbersOfLink; offset += 1) {
      const number = layout.bytes[offset] as number;
      used |= number > 0 && number < absent ? 1 << number : 0;
    }
  }
  for (let a = 0; a < layout.attempts; a += 1) {
    const from = layout.numbersFrom(a, n);
    for (let offset = from; offset < from + numbersOfLink; offset += 1) {
      const number = layout.bytes[offset] as number;
      layout.bytes[offset] = number < absent ? rankOf(number, used) : number;
    }
  }
  layout.setFence(n, rankOf(isHeld ? layout.fence(n) : 31, used));
}

function rankOf(number: number, used: number): number {
  let rank = 0;
  for (let rest = number === 0 ? 0 : used & ((2 << number) - 1); rest !== 0; rest &= rest - 1) {
    rank += 1;
  }
  return rank;
}
