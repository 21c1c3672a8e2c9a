import type { QuorumHold } from "./hold.ts";
import type { QuorumRequest } from "./request.ts";

/** So many tokens that were given back are remembered. */
const mostReleased = 1_000;
/** So many tokens that a repeat may claim are remembered. */
const mostClaimable = 10_000;

/**
 * Attempts that their callers have named, and may repeat. Of the requests for one attempt one asks the nodes at a time, with one
 * token: else one would give back the votes that another counts on.
 */
export class NamedAttempts {
  /** By name, in the order of their arrival. */
  readonly #requests = new Map<string, Set<QuorumRequest>>();
  /** Their outcome is unknown: what the nodes have of them is left for a repeat. */
  readonly #claimable = new Set<string>();
  /** Given back here: what a node still has of them is no vote, but is left from a release that it missed. */
  readonly #released = new Set<string>();

  begun(request: QuorumRequest): void {
    const { attemptId } = request;
    if (attemptId !== undefined) {
      this.#requests.set(attemptId, (this.#requests.get(attemptId) ?? new Set()).add(request));
    }
  }

  /** The next one asks, and meets what it has left. */
  settled(request: QuorumRequest): void {
    const { attemptId, isHeard } = request;
    if (attemptId === undefined) {
      return;
    }
    const wasLeader = this.leaderOf(request) === request;
    const others = this.#requests.get(attemptId);
    others?.delete(request);
    if (others?.size === 0) {
      this.#requests.delete(attemptId);
    }
    if (wasLeader) {
      queueMicrotask(() => {
        this.leaderOf(request)?.lead(isHeard);
      });
    }
  }

  /** The one that asks the nodes. */
  leaderOf(request: QuorumRequest): QuorumRequest | undefined {
    const { attemptId } = request;
    const requests = attemptId === undefined ? undefined : this.#requests.get(attemptId);
    for (const other of requests ?? []) {
      if (other.key === request.key && other.mode === request.mode) {
        return other;
      }
    }
    return undefined;
  }

  leave(token: string): void {
    addBounded(this.#claimable, token, mostClaimable);
  }

  isClaimable(token: string): boolean {
    return this.#claimable.has(token);
  }

  /** Those who ask for the attempt may have taken it for theirs as well. */
  release({ attemptId, token }: QuorumHold): void {
    if (attemptId !== undefined) {
      this.#claimable.delete(token);
      addBounded(this.#released, token, mostReleased);
      for (const request of Array.from(this.#requests.get(attemptId) ?? [])) {
        request.forget(token);
      }
    }
  }

  isReleased(token: string): boolean {
    return this.#released.has(token);
  }
}

/** The oldest goes. */
function addBounded(tokens: Set<string>, token: string, most: number): void {
  tokens.add(token);
  if (tokens.size > most) {
    tokens.delete(tokens.values().next().value as string);
  }
}
