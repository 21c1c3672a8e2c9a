/** `acquireTimeout` or `acquireAttemptsLimit` is used up. `cause` is the error of Holdfast, which names the holder if it is known. */
export class TimeoutError extends Error {
  override readonly name = "TimeoutError";
}

/** The lock was lost while it was held. `cause` is the `LeaseLostError` of Holdfast, with the reason. */
export class LostLockError extends Error {
  override readonly name = "LostLockError";
}
