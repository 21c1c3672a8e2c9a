/** Waits. @returns true after the time, false if the signal came first */
export function waitUnless(ms: number, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted || ms <= 0) {
    return Promise.resolve(ms <= 0);
  }
  return new Promise((resolve) => {
    const end = (isDone: boolean): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
      resolve(isDone);
    };
    const stop = (): void => {
      end(false);
    };
    // A longer time than a timer's limit means forever.
    const timer = setTimeout(end, Math.min(ms, 2_147_483_647), true);
    signal.addEventListener("abort", stop);
  });
}
