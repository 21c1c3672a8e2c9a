import type { Violation } from "../rules.ts";
import { asksOf, type RunStory } from "../attempts.ts";
import { nameOf } from "./latches.ts";

export const fewestSamples = 6;

/** What an ask may be refused with, and what a release may be answered with. */
const known: ReadonlySet<string> = new Set([
  "held",
  "aborted",
  "wait-timeout",
  "lease-lost",
  "engine-unavailable",
  "quorum-not-reached",
]);
const knownOfLatches: ReadonlySet<string> = new Set(["wait-timeout", "engine-unavailable", "latch-expired"]);
const knownAnswers: ReadonlySet<string> = new Set(["true", "false", ...known]);

export function nothingUnheard(run: RunStory): Violation[] {
  return Array.from(run.processes.values()).flatMap(({ name, unheard, crashed }) => [
    ...unheard.map(({ at, error }): Violation => ({
      rule: "unheard",
      at,
      key: null,
      text: `${name}: ${error}`,
    })),
    ...(crashed
      ? [{ rule: "unheard" as const, at: crashed.at, key: null, text: `${name} ended: ${crashed.how}` }]
      : []),
  ]);
}

export function onlyKnownErrors(run: RunStory): Violation[] {
  const found: Violation[] = [];
  for (const { process, ask, key, refusal, releaseAnswer, askedAt } of asksOf(run)) {
    if (refusal !== undefined && !known.has(refusal)) {
      found.push({ rule: "unheard", at: askedAt, key, text: `${process}#${ask} was refused: ${refusal}` });
    }
    if (releaseAnswer !== undefined && !knownAnswers.has(releaseAnswer)) {
      const text = `the release of ${process}#${ask} ended: ${releaseAnswer}`;
      found.push({ rule: "unheard", at: askedAt, key, text });
    }
  }
  for (const call of run.latchCalls) {
    if (call.code !== undefined && !knownOfLatches.has(call.code)) {
      const text = `${nameOf(call)} was refused: ${call.code}`;
      found.push({ rule: "unheard", at: call.askedAt, key: call.key, text });
    }
  }
  return found;
}

/** Of those that live long enough for it to be seen: the last third of the samples against the first. */
export function memoryStays(run: RunStory): Violation[] {
  const { memoryFactor, memoryBytes } = run.plan.bounds;
  const found: Violation[] = [];
  for (const { name, memory } of run.processes.values()) {
    const third = Math.floor(memory.length / 3);
    if (memory.length < fewestSamples) {
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
