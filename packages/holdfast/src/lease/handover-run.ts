import { QueueNode } from "../runtime/linked-queue.ts";

/** How far the grant of a hold has gone: its place among the holds of the line. */
export class HandoverRun<Hold> extends QueueNode<Hold> {
  readonly handovers: number;
  readonly since: number;

  constructor(hold: Hold, handovers: number, since: number) {
    super(hold);
    this.handovers = handovers;
    this.since = since;
  }
}

/** What may be handed over. The line keeps `run`; nobody else writes it. */
export interface Handoverable<Hold> {
  handoverRun: HandoverRun<Hold> | undefined;
}
