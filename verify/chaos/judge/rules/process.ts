import type { Violation } from "../rule.ts";
import { requestsOf, type RunHistory } from "../attempts.ts";
import { callName } from "./latches.ts";

export const minSamples = 6;

/** The error codes of a refused request, and the results of a release. */
const knownRefusals: ReadonlySet<string> = new Set([
  "held",
  "aborted",
  "wait-timeout",
  "lease-lost",
  "engine-unavailable",
  "quorum-not-reached",
]);
const knownLatchRefusals: ReadonlySet<string> = new Set([
  "wait-timeout",
  "engine-unavailable",
  "latch-expired",
]);
const knownReleaseAnswers: ReadonlySet<string> = new Set(["true", "false", ...knownRefusals]);

export function checkUnhandledErrors(run: RunHistory): Violation[] {
  return Array.from(run.processes.values()).flatMap(({ name, unhandledErrors, crashed }) => [
    ...unhandledErrors.map(({ at, error }): Violation => ({
      rule: "unhandled-error",
      at,
      key: null,
      text: `${name}: ${error}`,
    })),
    ...(crashed
      ? [
          {
            rule: "unhandled-error" as const,
            at: crashed.at,
            key: null,
            text: `${name} ended: ${crashed.how}`,
          },
        ]
      : []),
  ]);
}

export function checkErrorCodes(run: RunHistory): Violation[] {
  const found: Violation[] = [];
  for (const { process, requestId, key, refusal, releaseAnswer, requestedAt } of requestsOf(run)) {
    if (refusal !== undefined && !knownRefusals.has(refusal)) {
      found.push({
        rule: "unhandled-error",
        at: requestedAt,
        key,
        text: `${process}#${requestId} was refused: ${refusal}`,
      });
    }
    if (releaseAnswer !== undefined && !knownReleaseAnswers.has(releaseAnswer)) {
      const text = `the release of ${process}#${requestId} ended: ${releaseAnswer}`;
      found.push({ rule: "unhandled-error", at: requestedAt, key, text });
    }
  }
  for (const call of run.latchCalls) {
    if (call.code !== undefined && !knownLatchRefusals.has(call.code)) {
      const text = `${callName(call)} was refused: ${call.code}`;
      found.push({ rule: "unhandled-error", at: call.requestedAt, key: call.key, text });
    }
  }
  return found;
}

/** Compares the last third of the samples with the first third, in processes that run long enough. */
export function checkMemory(run: RunHistory): Violation[] {
  const { memoryFactor, memoryBytes } = run.plan.bounds;
  const found: Violation[] = [];
  for (const { name, memory } of run.processes.values()) {
    const third = Math.floor(memory.length / 3);
    if (memory.length < minSamples) {
      continue;
    }
    const first = mean(memory.slice(0, third).map(({ bytes }) => bytes));
    const last = mean(memory.slice(-third).map(({ bytes }) => bytes));
    if (last > first * memoryFactor + memoryBytes) {
      const text = `${name} had ${mebibytes(first)} in the first third of its time, and ${mebibytes(last)} in the last`;
      found.push({ rule: "memory", at: memory.at(-1)?.at ?? 0, key: null, text });
    }
  }
  return found;
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

export function mebibytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}
