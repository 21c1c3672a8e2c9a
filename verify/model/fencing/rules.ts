import { completionOrder, exclusion, realTimeOrder, uniqueness } from "../properties.ts";
import { phases, type Board } from "./board.ts";
import type { FencingSettings } from "./settings.ts";

/** The agreement rule: a number that a majority reported in the same round. 0: there is none. */
export function agreedNumber(
  board: Board,
  a: number,
  majority: number,
  mutant: FencingSettings["mutant"],
): number {
  let largest = 0;
  for (let n = 0; n < board.nodes; n += 1) {
    const number = board.vote(a, n);
    let same = 0;
    for (let other = 0; other < board.nodes; other += 1) {
      const isSame = board.vote(a, other) === number && board.voteRound(a, other) === board.voteRound(a, n);
      same += isSame ? 1 : 0;
    }
    if (number > 0 && same >= majority) {
      return number;
    }
    largest = Math.max(largest, number);
  }
  return mutant === "no-second-round" && board.votes(a) >= majority ? largest : 0;
}

/** Which promise is broken when this attempt gets the lock with this token; 0: none. */
export function promiseBrokenBy(board: Board, a: number, token: number, isTimed: boolean): number {
  let broken = token <= board.floor(a) ? realTimeOrder : 0;
  for (let other = 0; other < board.attempts; other += 1) {
    if (other !== a && board.token(other) > 0) {
      broken ||= brokenBetween(board, other, token, isTimed);
    }
  }
  return broken;
}

function brokenBetween(board: Board, other: number, token: number, isTimed: boolean): number {
  if (board.phase(other) === phases.holding) {
    return exclusion;
  }
  if (board.token(other) === token) {
    return uniqueness;
  }
  return isTimed && board.token(other) > token ? completionOrder : 0;
}
