import type { LockKeys } from "../protocol/keys.ts";
import type { Operation, Reply } from "../protocol/operation.ts";
import type { VoteRequest } from "./vote-request.ts";

export interface VoteOperationDetails {
  /** The number of the vote that the question gave back; 0: none. */
  readonly yielded: number;
  /** Which question it was. */
  readonly requestNumber: number;
}

/** One operation of a ballot. */
export class VoteOperation implements Operation {
  readonly keys: LockKeys;
  readonly args: readonly string[];
  readonly #voteRequest: VoteRequest;
  readonly #details: VoteOperationDetails;

  constructor(
    voteRequest: VoteRequest,
    keys: LockKeys,
    args: readonly string[],
    details: VoteOperationDetails,
  ) {
    this.#voteRequest = voteRequest;
    this.keys = keys;
    this.args = args;
    this.#details = details;
  }

  answered(reply: Reply): void {
    this.#voteRequest.answered(reply, this.#details);
  }

  failed(error: unknown): void {
    this.#voteRequest.failed(error);
  }
}
