import { QueueNode } from "../runtime/linked-queue.ts";

/** The node of a lease in its local queue, with the number and the start of the hand-overs of its grant. */
export class HandoverRun<Hold> extends QueueNode<Hold> {
  readonly handovers: number;
  readonly since: number;

  constructor(hold: Hold, handovers: number, since: number) {
    super(hold);
    this.handovers = handovers;
    this.since = since;
  }
}

/** A lease that may be handed over. Only its local queue writes `handoverRun`. */
export interface Handoverable<Hold> {
  handoverRun: HandoverRun<Hold> | undefined;
}
