/** What became of one failure with one library. */
export interface Outcome {
  readonly verdict: Verdict;
  /** In a few words, with figures. */
  readonly how: string;
}

/**
 * `not offered`: the library has nothing that could fail so.
 * `not run`: the scenario itself could not be set up, so nothing is known.
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

/** Failed if there is any complaint. */
export function outcomeOf(complaints: readonly string[], how = ""): Outcome {
  return complaints.length === 0 ? passed(how) : failed(complaints.join("; "));
}

/** "2.0 s", "35 ms" */
export function formatMs(ms: number): string {
  return ms < 100 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

/** "96 000" */
export function formatCount(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, " ");
}

/** The first line of what an error says, short enough for a table's footnote. */
export function verdictText(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  const [line = ""] = text.split("\n");
  return line.length > 90 ? `${line.slice(0, 87)}...` : line;
}
