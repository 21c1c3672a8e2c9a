import type { Locks } from "holdfast";

/** One program: `here` and `there` are two processes, as far as the locks are concerned. */
export type Example = (
  firstProcess: Locks,
  secondProcess: Locks,
  print: (line: string) => void,
) => Promise<void>;

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
