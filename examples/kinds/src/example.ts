import type { Locks } from "holdfast";

/** One example. For the locks, its two `Locks` objects are two processes. */
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
