import type { Figures, Slow } from "./figures.ts";
import { whyWithin, type FaultKind } from "../plan/fault-kinds.ts";
import { rules, type Violation } from "../judge/rules.ts";
import { fewestSamples, mean, mebibytes } from "../judge/rules/process.ts";
import type { RunStory } from "../judge/attempts.ts";

const mostTold = 200;

/** A run for readers. */
export function reportOf(
  run: RunStory,
  violations: readonly Violation[],
  figures: Figures,
  timelines: readonly string[],
): string {
  return [
    `# Chaos on ${nameOf(run)}`,
    violations.length === 0
      ? "Nothing was violated."
      : `**Violations: ${violations.length}**, told below${violations.length > mostTold ? `, the first ${mostTold} of them` : ""}.`,
    settings(run),
    happened(figures),
    byKind(figures),
    counters(figures),
    found(violations),
    faults(figures),
    ...(figures.failovers.length === 0 ? [] : [failovers(figures)]),
    slow("The slowest grants in storms", figures.slowest),
    slow("The slowest grants in peace", figures.slowestInPeace),
    memory(run),
    pictures(timelines),
  ].join("\n\n");
}

function nameOf({ plan }: RunStory): string {
  const names = {
    redis: "one server",
    redlock: `Redlock of ${plan.nodes.length}`,
    sentinel: `a primary and ${plan.nodes.length - 1} replicas, by sentinels`,
    cluster: `a cluster of ${plan.nodes.length / 2} primaries with a replica each`,
  };
  const servers = names[plan.engine];
  return plan.without === null ? servers : `${servers}, without ${plan.without}`;
}

function settings({ plan }: RunStory): string {
  const { bounds, clients, nodes, storms } = plan;
  const durable = nodes.filter((node) => node.durable).length;
  const callers = clients.reduce((sum, client) => sum + client.callers, 0);
  const handing = clients.filter(({ handover }) => handover).length;
  return [
    "## Settings",
    "",
    `- seed ${plan.seed}, ${storms.length} storms of ${((storms[0]?.forMs ?? 0) / 1_000).toFixed(1)} s with peace after each`,
    `- ${nodes.length} servers, ${durable} of them with every write on their disk, ${nodes.length - durable} that forget when they are restarted`,
    `- ${clients.length} client processes with ${callers} callers, ${handing} of them with hand-over in memory`,
    `- bounds: an ask or a release is settled ${bounds.settleMs} ms after it had to be, in peace everybody gets every lock within ${bounds.peaceMs} ms, and nothing is left after ${bounds.leftMs} ms`,
  ].join("\n");
}

function happened(figures: Figures): string {
  const { scriptsPerGrant } = figures;
  return [
    "## What happened",
    "",
    table(
      ["", ""],
      [
        ["time", `${figures.seconds} s`],
        ["faults", String(figures.faults)],
        ["client processes, with those that replaced killed ones", String(figures.processes)],
        ["asks", String(figures.asks)],
        ["grants", `${figures.grants} (${list(figures.grantsByKind)})`],
        ["by key", list(figures.grantsByKey)],
        ["refused", list(figures.refusals)],
        ["losses told", `${figures.losses} (${list(figures.lossesByReason)})`],
        ["of them told after another's grant, by processes that could not run", String(figures.toldLate)],
        ["broken by an operator", String(figures.breaks)],
        ["scripts of all servers for each grant, in storms", String(scriptsPerGrant.storm ?? "?")],
        ["the same in peace", String(scriptsPerGrant.peace ?? "?")],
        ...Object.entries(figures.rounds).map(([phase, rounds]) => [
          `rounds until a majority gave one fencing number, ${phase}`,
          list(rounds),
        ]),
      ],
    ),
  ].join("\n");
}

function byKind({ byLock, mostAtOnce, latches }: Figures): string {
  const rows = Object.entries(byLock).map(
    ([name, { asks, grants, refusals, losses, nested, downgrades }]) => [
      name,
      String(asks),
      [grants, ...told(nested, "nested"), ...told(downgrades, "were writers before")].join(", "),
      String(refusals),
      String(losses),
    ],
  );
  const shared = Object.entries(mostAtOnce).map(([key, most]) => `${most} of \`${key}\``);
  return [
    "## Kinds of lock, in storms",
    "",
    table(["", "asks", "grants", "refused", "losses told"], rows),
    "",
    ...(latches.counts + latches.waits > 0 ? [latchReport(latches), ""] : []),
    `Valid at once, at most: ${shared.length === 0 ? "one" : shared.join(", ")}.`,
  ].join("\n");
}

function latchReport({ counts, waits, letGo, expired, judged, opened }: Figures["latches"]): string {
  return `Latches: ${counts} counts and ${waits} waits, of which ${letGo} were let go; ${expired} calls were about one that was over. Of ${judged} that were judged ${opened} opened.`;
}

function told(count: number, what: string): string[] {
  return count === 0 ? [] : [`${count} ${what}`];
}

function counters(figures: Figures): string {
  return [
    "## The protected resource",
    "",
    `It refused ${figures.refusedByResource} visits for a token that was smaller than one it had seen.`,
    "",
    table(
      ["counter", "writes", "lost"],
      [
        ["without tokens", String(figures.writesWithoutTokens), String(figures.lostWithoutTokens)],
        ["with tokens, accepted", String(figures.writesWithTokens), String(figures.lostWithTokens)],
      ],
    ),
    "",
    "What is lost without tokens was written by holders that were paused between reading and writing, or broken by an operator.",
  ].join("\n");
}

function found(violations: readonly Violation[]): string {
  const counts = rules.map(({ name, says }) => {
    const count = violations.filter(({ rule }) => rule === name).length;
    return [name, says, count === 0 ? "kept" : `**violated: ${count}**`];
  });
  const told = violations
    .slice(0, mostTold)
    .flatMap(({ rule, at, key, text, evidence = [] }) => [
      `- ${at.toFixed(3)} ms, ${rule}${key === null ? "" : `, \`${key}\``}: ${text}`,
      ...evidence.map((line) => `  - ${line}`),
    ]);
  return ["## Rules", "", table(["rule", "", ""], counts), ...(told.length === 0 ? [] : ["", ...told])].join(
    "\n",
  );
}

function faults({ faultsByKind }: Figures): string {
  const rows = Object.entries(faultsByKind).map(([kind, count]) => [
    kind,
    String(count),
    whyWithin[kind as FaultKind],
  ]);
  return [
    "## Faults, and why exclusion has to hold all the same",
    "",
    table(["kind", "times", ""], rows),
  ].join("\n");
}

function failovers({ failovers: all, conflictsAcrossFailovers }: Figures): string {
  const rows = all.map(({ at, withoutGrantMs, twoForMs }) => [
    `${at} ms`,
    `${withoutGrantMs} ms`,
    `${twoForMs} ms`,
  ]);
  return [
    "## Failovers",
    "",
    `Holders beside one that a failover had made the servers forget, which one logical server does not exclude: ${conflictsAcrossFailovers}.`,
    "",
    table(["seen at", "nothing granted there for", "two were primary for"], rows),
  ].join("\n");
}

function slow(title: string, slowest: readonly Slow[]): string {
  const rows = slowest.map(({ waitedMs, at, key, who, kind, as }) => [
    `${waitedMs} ms`,
    `${at} ms`,
    key,
    as,
    kind,
    who,
  ]);
  return [`## ${title}`, "", table(["waited", "asked at", "key", "as", "kind", "by"], rows)].join("\n");
}

function memory({ processes }: RunStory): string {
  const rows = Array.from(processes.values()).map(({ name, memory: samples }) => {
    const third = Math.max(1, Math.floor(samples.length / 3));
    const bytes = samples.map((sample) => sample.bytes);
    const first = bytes.length === 0 ? "" : mebibytes(mean(bytes.slice(0, third)));
    const last = bytes.length === 0 ? "" : mebibytes(mean(bytes.slice(-third)));
    const isJudged = samples.length >= fewestSamples ? "" : "too few to judge";
    return [name, String(samples.length), first, last, isJudged];
  });
  return [
    "## Memory after a collection",
    "",
    table(["process", "samples", "first third", "last third", ""], rows),
  ].join("\n");
}

function pictures(timelines: readonly string[]): string {
  const images = timelines.map((name) => `![${name}](${name})`);
  return ["## Timelines of the holders", "", ...images, ""].join("\n");
}

function list(counts: Readonly<Record<string, number>>): string {
  const told = Object.entries(counts).map(([name, count]) => `${count} ${name}`);
  return told.length === 0 ? "none" : told.join(", ");
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`);
  return lines.join("\n");
}
