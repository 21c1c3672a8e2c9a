import { FencingNumbers } from "../../judge/fencing-numbers.ts";
import type { Findings } from "./findings.ts";
import { wallStart } from "../run/virtual-clock.ts";
import type { WaitingRequest } from "./waiting-request.ts";
import type { WatchedLease } from "./leases.ts";

/** The engine's guarantees, and its losses of data. */
export interface FencingContext {
  readonly isQuorum: boolean;
  /** When the only server lost the grants that it had made until then; -Infinity: never. */
  readonly dataLostAt: () => number;
  readonly numbersLostAt: readonly number[];
}

/** Checks that the fencing numbers of one key are unique, and rise. */
export class FencingCheck {
  readonly #findings: Findings;
  readonly #context: FencingContext;
  readonly #numbers = new FencingNumbers();

  constructor(findings: Findings, context: FencingContext) {
    this.#findings = findings;
    this.#context = context;
  }

  /** @param since the grant of the lease is no older */
  check(request: WaitingRequest, lease: WatchedLease, since: number, capacity: number): void {
    const { client, weight } = request;
    const { fencingToken } = lease;
    const mayBeEqual = this.#context.isQuorum && weight === 1;
    const wrong = this.#numbers.problemOf(fencingToken, { weight, since }, capacity, mayBeEqual);
    // A grant from before a loss of data may be reported after a later grant.
    const mayBeLate =
      since < this.#context.dataLostAt() && fencingToken > this.#numbers.largestBefore(since).number;
    if (wrong === undefined) {
      return;
    } else if (request.hadPause && lease.remainingMs() <= 0) {
      this.#findings.skip("fencing: the process paused with the grant until it had expired");
    } else if (mayBeLate || this.#mayBeReissued()) {
      this.#findings.skip("fencing: a server lost its numbers");
    } else {
      this.#findings.add(
        "fencing",
        `client ${client} was granted ${lease.key} with the number ${fencingToken}, ${wrong.text}`,
      );
    }
  }

  reported(fencingToken: bigint, weight: number): void {
    this.#numbers.reported(fencingToken, weight, this.#findings.now);
  }

  /** Whether the largest number was ahead of the time, and a node that lost its data may have been the only one to store it. */
  #mayBeReissued(): boolean {
    const { largest } = this.#numbers;
    const { now } = this.#findings;
    const isAhead = largest !== undefined && largest.number > BigInt(Math.ceil((wallStart + now) * 1_000));
    return isAhead && this.#context.numbersLostAt.some((at) => at > largest.at && at < now);
  }
}
