import type { NodeState, TracedOperation, TraceEvent } from "../sim/run/traced-redis.ts";

/** The reason for which the rest of a trace is not checked. */
export const tooManyAttempts = "more attempts at a time than the model can hold";

/** Finds the later events of each token in a trace. */
export class Mentions {
  readonly #indices = new Map<TracedOperation, number>();
  readonly #last = new Map<string, number>();
  /** The last operation by node, name and token. */
  readonly #lastRequest = new Map<string, TracedOperation>();

  readonly #nodes: readonly number[];

  constructor(events: readonly TraceEvent[]) {
    this.#nodes = [...new Set(events.flatMap((event) => (event.kind === "call" ? [event.node] : [])))];
    events.forEach((event, index) => {
      if (event.kind === "call") {
        const isChange = tokensIn(event.before).join() !== tokensIn(event.after).join();
        event.operations.forEach((operation) => {
          this.#indices.set(operation, index);
          if (isChange) {
            this.#last.set(operation.token, index);
          }
          this.#lastRequest.set(`${event.node} ${operation.name} ${operation.token}`, operation);
        });
        for (const token of [...tokensIn(event.before), ...tokensIn(event.after)]) {
          this.#last.set(token, index);
        }
      }
    });
  }

  /** Whether the token is on no node from this event on, so that its operations change nothing. */
  isLastMention(token: string, index: number): boolean {
    return (this.#last.get(token) ?? -1) < index;
  }

  /** The nodes that execute an operation of that name and token after this event. */
  nodesWith(name: string, token: string, index: number): readonly number[] {
    return this.#nodes.filter((node) => {
      const last = this.#lastRequest.get(`${node} ${name} ${token}`);
      return last !== undefined && (this.#indices.get(last) ?? -1) > index;
    });
  }

  /** Whether the node executes the same operation of the token again later. */
  isRepeated(node: number, operation: TracedOperation): boolean {
    return this.#lastRequest.get(`${node} ${operation.name} ${operation.token}`) !== operation;
  }
}

export function tokensIn({ holder, queue }: NodeState): readonly string[] {
  return holder === undefined ? queue : [holder, ...queue];
}

/** Compares tokens in the order of the queues. */
export function byTicket(one: string, other: string): number {
  const [ticket, others] = [ticketOf(one), ticketOf(other)];
  return ticket === others ? (one < other ? -1 : 1) : ticket - others;
}

function ticketOf(token: string): number {
  return Number(token.slice(token.lastIndexOf(":") + 1));
}
