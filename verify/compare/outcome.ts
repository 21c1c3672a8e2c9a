/** The outcome of one failure with one library. */
export interface Outcome {
  readonly verdict: Verdict;
  /** An explanation in a few words, with numbers. */
  readonly how: string;
}

/**
 * `not offered`: the library lacks the operation, so it cannot fail this way.
 * `not run`: the set-up of the scenario failed, so the result is unknown.
 */
type Verdict = (typeof verdictNames)[number];
const verdictNames = ["passed", "failed", "not offered", "not run"] as const;

export function passed(how = ""): Outcome {
  return { verdict: "passed", how };
}

export function failed(how: string): Outcome {
  return { verdict: "failed", how };
}

export function notOffered(how: string): Outcome {
  return { verdict: "not offered", how };
}

/** Failed if there is a complaint. */
export function outcomeOf(complaints: readonly string[], how = ""): Outcome {
  return complaints.length === 0 ? passed(how) : failed(complaints.join("; "));
}

/** For example "2.0 s" or "35 ms". */
export function formatMs(ms: number): string {
  return ms < 100 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

/** For example "96 000". */
export function formatCount(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, " ");
}

/** The first line of an error message, shortened for a footnote. */
export function verdictText(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  const [line = ""] = text.split("\n");
  return line.length > 90 ? `${line.slice(0, 87)}...` : line;
}
