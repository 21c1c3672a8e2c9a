/**
 * Runs `cleanUp` when this process ends before it could tidy up in order: on an uncaught error or a second signal.
 * It must be synchronous. @returns the end of that obligation
 */
export function atExit(cleanUp: () => void): () => void {
  process.once("exit", cleanUp);
  return () => void process.off("exit", cleanUp);
}
