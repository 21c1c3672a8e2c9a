/** The actions of one signal. One listener serves all of them, because one signal may abort thousands of calls. */
interface AbortDispatcher {
  readonly actions: Set<(reason: unknown) => void>;
  readonly listener: () => void;
}

const dispatchers = new WeakMap<AbortSignal, AbortDispatcher>();

/**
 * Calls `action` once, with the signal's reason, when the signal aborts.
 * @returns a function that removes the action. The last removal also removes the listener from the signal.
 */
export function onAbort(signal: AbortSignal, action: (reason: unknown) => void): () => void {
  const dispatcher = dispatchers.get(signal) ?? dispatch(signal);
  dispatcher.actions.add(action);
  return () => {
    dispatcher.actions.delete(action);
    if (dispatcher.actions.size === 0 && dispatchers.get(signal) === dispatcher) {
      dispatchers.delete(signal);
      signal.removeEventListener("abort", dispatcher.listener);
    }
  };
}

function dispatch(signal: AbortSignal): AbortDispatcher {
  const actions = new Set<(reason: unknown) => void>();
  const listener = (): void => {
    dispatchers.delete(signal);
    for (const action of actions) {
      action(signal.reason);
    }
  };
  const dispatcher = { actions, listener };
  dispatchers.set(signal, dispatcher);
  signal.addEventListener("abort", listener, { once: true });
  return dispatcher;
}
