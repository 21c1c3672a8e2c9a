import { completionOrder, exclusion, realTimeOrder, uniqueness } from "../properties.ts";
import { phases, type Board } from "./board.ts";

/** Which promise is broken when this attempt gets the lock with this token; 0: none. @param token 0: it is not looked at */
export function promiseBrokenBy(board: Board, a: number, token: number): number {
  let broken = token > 0 && token <= board.floor(a) ? realTimeOrder : 0;
  for (let other = 0; other < board.attempts; other += 1) {
    if (other !== a) {
      broken ||= brokenBetween(board, other, token);
    }
  }
  return broken;
}

function brokenBetween(board: Board, other: number, token: number): number {
  if (board.phase(other) === phases.holding) {
    return exclusion;
  }
  if (token === 0 || board.token(other) < token) {
    return 0;
  }
  return board.token(other) === token ? uniqueness : completionOrder;
}
