/** Who listens to a signal through us. One listener on the signal serves them all: a caller's signal may end thousands. */
interface Audience {
  readonly actions: Set<(reason: unknown) => void>;
  readonly listener: () => void;
}

const audiences = new WeakMap<AbortSignal, Audience>();

/**
 * Calls `action` once with the signal's reason when it aborts.
 * @returns the removal; with the last one our listener leaves the signal
 */
export function whenAborted(signal: AbortSignal, action: (reason: unknown) => void): () => void {
  const audience = audiences.get(signal) ?? gather(signal);
  audience.actions.add(action);
  return () => {
    audience.actions.delete(action);
    if (audience.actions.size === 0 && audiences.get(signal) === audience) {
      audiences.delete(signal);
      signal.removeEventListener("abort", audience.listener);
    }
  };
}

function gather(signal: AbortSignal): Audience {
  const actions = new Set<(reason: unknown) => void>();
  const listener = (): void => {
    audiences.delete(signal);
    for (const action of actions) {
      action(signal.reason);
    }
  };
  const audience = { actions, listener };
  audiences.set(signal, audience);
  signal.addEventListener("abort", listener, { once: true });
  return audience;
}
