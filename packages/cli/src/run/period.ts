/** The shortest `--for` of `once`, ms. */
export const minPeriodMs = 1_000;

/** The labels of a key of `once`: whether its command runs, or ran to success, and the period from the grant, ms. */
export function onceLabels(phase: "running" | "ran", periodMs: number): Record<string, string> {
  return { once: phase, periodMs: String(periodMs) };
}
