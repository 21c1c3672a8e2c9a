/**
 * Runs the synchronous `cleanUp` if this process ends before its normal clean-up: on an uncaught error or a second signal.
 * @returns a function that cancels the call
 */
export function atExit(cleanUp: () => void): () => void {
  process.once("exit", cleanUp);
  return () => void process.off("exit", cleanUp);
}
