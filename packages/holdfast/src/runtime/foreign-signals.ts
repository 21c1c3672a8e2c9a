/** The part of a signal that every implementation has. */
type SignalLike = Pick<AbortSignal, "aborted" | "addEventListener"> & { readonly reason?: unknown };

/** The own signals of foreign signals. A signal that lives long has one listener, however many calls it is passed to. */
const followers = new WeakMap<SignalLike, AbortSignal>();

/** Whether `value` has the shape of a signal, as those of polyfills and of other realms have. */
export function isLikeSignal(value: unknown): value is SignalLike {
  const { aborted, addEventListener } = (value ?? {}) as Partial<SignalLike>;
  return typeof aborted === "boolean" && typeof addEventListener === "function";
}

/** A signal of this realm that aborts with the foreign signal, for functions that accept no other, such as `AbortSignal.any`. */
export function follow(foreign: SignalLike): AbortSignal {
  const known = followers.get(foreign);
  if (known) {
    return known;
  }
  const own = new AbortController();
  const abort = (): void => own.abort(foreign.reason); // without a reason, an `AbortError`
  if (foreign.aborted) {
    abort();
  } else {
    foreign.addEventListener("abort", abort, { once: true });
  }
  followers.set(foreign, own.signal);
  return own.signal;
}
