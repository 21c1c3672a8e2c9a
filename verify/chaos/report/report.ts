import type { Figures, SlowRequest } from "./figures.ts";
import { faultLimits, type FaultKind } from "../plan/fault-kinds.ts";
import type { EngineName } from "../plan/plan.ts";
import type { Violation } from "../judge/rule.ts";
import { rules } from "../judge/rules.ts";
import { minSamples, mean, mebibytes } from "../judge/rules/process.ts";
import type { RunHistory } from "../judge/attempts.ts";

const maxShown = 200;

/** The report of a run, in Markdown. */
export function reportOf(run: RunHistory, violations: readonly Violation[], figures: Figures): string {
  return [
    `# Chaos on ${nameOf(run)}`,
    violations.length === 0
      ? "No rule was violated."
      : `**Violations: ${violations.length}**, told below${violations.length > maxShown ? `, the first ${maxShown} of them` : ""}.`,
    settingsSection(run),
    activitySection(figures),
    kindsSection(figures),
    countersSection(figures),
    violationsSection(violations),
    faultsSection(figures),
    ...(figures.failovers.length === 0 ? [] : [failoversSection(figures)]),
    slowestSection("The slowest grants in storms", figures.slowest),
    slowestSection("The slowest grants in quiet periods", figures.slowestInQuietPeriod),
    memorySection(run),
  ].join("\n\n");
}

function nameOf({ plan }: RunHistory): string {
  const names: Readonly<Record<EngineName, string>> = {
    redis: "one server",
    redlock: `Redlock of ${plan.nodes.length}`,
    sentinel: `a primary and ${plan.nodes.length - 1} replicas, by sentinels`,
    cluster: `a cluster of ${plan.nodes.length / 2} primaries with a replica each`,
    postgres: "PostgreSQL",
    mysql: "MariaDB",
    etcd: "etcd",
    "etcd-cluster": `a cluster of ${plan.nodes.length} members of etcd`,
    zookeeper: "ZooKeeper",
    "zookeeper-ensemble": `an ensemble of ${plan.nodes.length} servers of ZooKeeper`,
  };
  const servers = names[plan.engine];
  return plan.without === null ? servers : `${servers}, without ${plan.without}`;
}

function settingsSection({ plan }: RunHistory): string {
  const { bounds, clients, nodes, storms } = plan;
  const durable = nodes.filter((node) => node.durable).length;
  const callers = clients.reduce((sum, client) => sum + client.callers, 0);
  const handing = clients.filter(({ handover }) => handover).length;
  return [
    "## Settings",
    "",
    `- seed ${plan.seed}, ${storms.length} storms of ${((storms[0]?.forMs ?? 0) / 1_000).toFixed(1)} s with a quiet period after each`,
    `- ${nodes.length} servers, ${durable} of them with every write on disk, ${nodes.length - durable} that lose data at a restart, unless they become durable`,
    `- ${clients.length} client processes with ${callers} callers, ${handing} of them with hand-over in memory`,
    `- bounds: requests and releases settle within ${bounds.settleMs} ms after their deadlines; in quiet periods locks within ${bounds.quietPeriodMs} ms, no residue after ${bounds.residueMs} ms`,
  ].join("\n");
}

function activitySection(figures: Figures): string {
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
        ["requests", String(figures.requests)],
        ["grants", `${figures.grants} (${list(figures.grantsByKind)})`],
        ["by key", list(figures.grantsByKey)],
        ["refused", list(figures.refusals)],
        ["losses reported", `${figures.losses} (${list(figures.lossesByReason)})`],
        ["of them reported after the next grant, by stalled processes", String(figures.lateLossNotices)],
        ["broken by an operator", String(figures.breaks)],
        ["scripts of all servers for each grant, in storms", String(scriptsPerGrant.storm ?? "?")],
        ["scripts for each grant, in quiet periods", String(scriptsPerGrant.quiet ?? "?")],
        ...Object.entries(figures.rounds).map(([phase, rounds]) => [
          `rounds until a majority gave one fencing number, ${phase}`,
          list(rounds),
        ]),
      ],
    ),
  ].join("\n");
}

function kindsSection({ byLock, maxConcurrent, latches }: Figures): string {
  const rows = Object.entries(byLock).map(
    ([name, { requests, grants, refusals, losses, nested, downgrades }]) => [
      name,
      String(requests),
      [grants, ...countOf(nested, "nested"), ...countOf(downgrades, "were writers before")].join(", "),
      String(refusals),
      String(losses),
    ],
  );
  const shared = Object.entries(maxConcurrent).map(([key, most]) => `${most} of \`${key}\``);
  return [
    "## Kinds of lock, in storms",
    "",
    table(["", "requests", "grants", "refused", "losses reported"], rows),
    "",
    ...(latches.counts + latches.waits > 0 ? [latchSection(latches), ""] : []),
    `Valid at once, at most: ${shared.length === 0 ? "one" : shared.join(", ")}.`,
  ].join("\n");
}

function latchSection({ counts, waits, released, expired, judged, opened }: Figures["latches"]): string {
  return `Latches: ${counts} counts and ${waits} waits, of which ${released} returned; ${expired} calls concerned an expired latch. Of ${judged} judged latches ${opened} opened.`;
}

function countOf(count: number, noun: string): string[] {
  return count === 0 ? [] : [`${count} ${noun}`];
}

function countersSection(figures: Figures): string {
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
    "A write is lost without tokens if its holder was paused between reading and writing, or broken by an operator.",
  ].join("\n");
}

function violationsSection(violations: readonly Violation[]): string {
  const counts = rules.map(({ name, description }) => {
    const count = violations.filter(({ rule }) => rule === name).length;
    return [name, description, count === 0 ? "kept" : `**violated: ${count}**`];
  });
  const shown = violations
    .slice(0, maxShown)
    .flatMap(({ rule, at, key, text, evidence = [] }) => [
      `- ${at.toFixed(3)} ms, ${rule}${key === null ? "" : `, \`${key}\``}: ${text}`,
      ...evidence.map((line) => `  - ${line}`),
    ]);
  return [
    "## Rules",
    "",
    table(["rule", "", ""], counts),
    ...(shown.length === 0 ? [] : ["", ...shown]),
  ].join("\n");
}

function faultsSection({ faultsByKind }: Figures): string {
  const rows = Object.entries(faultsByKind).map(([kind, count]) => [
    kind,
    String(count),
    faultLimits[kind as FaultKind],
  ]);
  return ["## Faults, and why exclusion must still hold", "", table(["kind", "times", ""], rows)].join("\n");
}

function failoversSection({ failovers: list, conflictsAcrossFailovers }: Figures): string {
  const rows = list.map(({ at, withoutGrantMs, twoForMs }) => [
    `${at} ms`,
    `${withoutGrantMs} ms`,
    `${twoForMs} ms`,
  ]);
  return [
    "## Failovers",
    "",
    `Overlaps with a holder that a failover may have lost, which one logical server does not exclude: ${conflictsAcrossFailovers}.`,
    "",
    table(["seen at", "no grant for", "two were primary for"], rows),
  ].join("\n");
}

function slowestSection(title: string, slowest: readonly SlowRequest[]): string {
  const rows = slowest.map(({ waitedMs, at, key, requester, kind, lockKind }) => [
    `${waitedMs} ms`,
    `${at} ms`,
    key,
    lockKind,
    kind,
    requester,
  ]);
  return [`## ${title}`, "", table(["waited", "requested at", "key", "as", "kind", "by"], rows)].join("\n");
}

function memorySection({ processes }: RunHistory): string {
  const rows = Array.from(processes.values()).map(({ name, memory: samples }) => {
    const third = Math.max(1, Math.floor(samples.length / 3));
    const bytes = samples.map((sample) => sample.bytes);
    const first = bytes.length === 0 ? "" : mebibytes(mean(bytes.slice(0, third)));
    const last = bytes.length === 0 ? "" : mebibytes(mean(bytes.slice(-third)));
    const isJudged = samples.length >= minSamples ? "" : "too few to judge";
    return [name, String(samples.length), first, last, isJudged];
  });
  return [
    "## Memory after a collection",
    "",
    table(["process", "samples", "first third", "last third", ""], rows),
  ].join("\n");
}

function list(counts: Readonly<Record<string, number>>): string {
  const items = Object.entries(counts).map(([name, count]) => `${count} ${name}`);
  return items.length === 0 ? "none" : items.join(", ");
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`);
  return lines.join("\n");
}
