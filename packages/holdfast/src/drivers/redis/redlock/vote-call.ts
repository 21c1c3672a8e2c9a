import type { LockKeys } from "../protocol/keys.ts";
import type { Operation, Reply } from "../protocol/operation.ts";
import type { Ballot } from "./vote-request.ts";

export interface Asked {
  /** The number of the vote that the question gave back; 0: none. */
  readonly yielded: number;
  /** Which question it was. */
  readonly ask: number;
}

/** One operation of a ballot. */
export class Question implements Operation {
  readonly keys: LockKeys;
  readonly args: readonly string[];
  readonly #ballot: Ballot;
  readonly #asked: Asked;

  constructor(ballot: Ballot, keys: LockKeys, args: readonly string[], asked: Asked) {
    this.#ballot = ballot;
    this.keys = keys;
    this.args = args;
    this.#asked = asked;
  }

  answered(reply: Reply): void {
    this.#ballot.answered(reply, this.#asked);
  }

  failed(error: unknown): void {
    this.#ballot.failed(error);
  }
}
