import { absent, flags, numbersOfLink, phases, rounds, type Board } from "./board.ts";

/**
 * Who holds no more forgets all but what may still take effect. Numbers are compared only with others of the same node: they are
 * counted anew from 1, in the same order.
 */
export function renumber(board: Board): void {
  for (let a = 0; a < board.attempts; a += 1) {
    if (board.phase(a) === phases.past) {
      forget(board, a);
    }
  }
  for (let n = 0; n < board.nodes; n += 1) {
    renumberNode(board, n);
  }
}

function forget(board: Board, a: number): void {
  board.setRound(a, rounds.none);
  board.setBegunSince(a, 0);
  board.setOvertaken(a, false);
  for (let n = 0; n < board.nodes; n += 1) {
    board.clear(a, n, ~flags.refill);
    const from = board.numbersFrom(a, n);
    board.bytes.fill(0, from, from + numbersOfLink);
  }
}

function renumberNode(board: Board, n: number): void {
  const isHeld = board.holder(n) > 0;
  let used = isHeld ? 1 << board.number(n) : 0;
  for (let a = 0; a < board.attempts; a += 1) {
    const from = board.numbersFrom(a, n);
    for (let offset = from; offset < from + numbersOfLink; offset += 1) {
      const number = board.bytes[offset] as number;
      used |= number > 0 && number < absent ? 1 << number : 0;
    }
  }
  for (let a = 0; a < board.attempts; a += 1) {
    const from = board.numbersFrom(a, n);
    for (let offset = from; offset < from + numbersOfLink; offset += 1) {
      const number = board.bytes[offset] as number;
      board.bytes[offset] = number < absent ? rankOf(number, used) : number;
    }
  }
  board.setNumber(n, rankOf(isHeld ? board.number(n) : 31, used));
}

function rankOf(number: number, used: number): number {
  let rank = 0;
  for (let rest = number === 0 ? 0 : used & ((2 << number) - 1); rest !== 0; rest &= rest - 1) {
    rank += 1;
  }
  return rank;
}
