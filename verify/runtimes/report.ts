import { table, type Row } from "../compare/table.ts";
import type { Outcome } from "./outcome.ts";
import type { ProgramResult } from "./programs.ts";
import { formats, type Client, type Server } from "./roster.ts";
import type { SuitesResult } from "./suites.ts";
import { settings, type TypesResult } from "./types.ts";

/** The results of a run, with the exact versions. */
export interface Results {
  readonly date: string;
  /** By the name of the client library. */
  readonly clientVersions: Readonly<Record<string, string | undefined>>;
  /** By the name of the server, for example "Redis 8.0.2". */
  readonly serverVersions: Readonly<Record<string, string>>;
  readonly programs: readonly ProgramResult[];
  readonly types: readonly TypesResult[];
  readonly suites: readonly SuitesResult[];
  /** The servers that could not be installed, with the reasons. */
  readonly notRun: readonly string[];
}

interface Listed {
  readonly clients: readonly Client[];
  readonly servers: readonly Server[];
}

const formatTitles = { esm: "ES module", cjs: "CommonJS", ts: "TypeScript, run directly" } as const;

export function allPassed({ programs, types, suites }: Results): boolean {
  const outcomes = [...programs, ...types, ...suites].map(({ outcome }) => outcome);
  return outcomes.length > 0 && outcomes.every(({ state }) => state !== "failed");
}

/** The tables in Markdown, readable as plain text too. */
export function toText(results: Results, listed: Listed): string {
  const sections = [
    ["Runtimes and client libraries", byRuntime(results, listed)],
    ["Servers and client libraries", byServer(results, listed)],
    ["Replicas and Sentinel", bySuites(results, listed)],
    ["Module formats", byFormat(results)],
    ["TypeScript", byCompiler(results)],
  ].filter(([, text]) => text !== "");
  const failures = failureLines(results);
  return [
    ...sections.map(([title, text]) => `## ${title}\n\n${text}`),
    ...list("Failed", failures),
    ...list("Not run", results.notRun),
  ].join("\n\n");
}

function list(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`## ${title}\n\n${lines.map((line) => `- ${line}`).join("\n")}`];
}

/** One line for each reason, with the cells that have it. */
function failureLines({ programs, types, suites }: Results): string[] {
  const cells = new Map<string, string[]>();
  const add = (name: string, outcome: Outcome): void => {
    for (const reason of outcome.state === "failed" ? outcome.reasons : []) {
      cells.set(reason, [...(cells.get(reason) ?? []), name]);
    }
  };
  for (const { runtime, client, server, format, outcome } of programs) {
    add(`${runtime}, ${client}, ${server}, ${format}`, outcome);
  }
  for (const { compiler, setting, outcome } of types) {
    add(`TypeScript ${compiler}, ${setting}`, outcome);
  }
  for (const { server, outcome } of suites) {
    add(`tests of replicas and Sentinel, ${server}`, outcome);
  }
  return [...cells].map(([reason, names]) => `${reason} (${names.join("; ")})`);
}

function byRuntime(results: Results, { clients }: Listed): string {
  const rows = runtimesOf(results).map((runtime) => [
    titleOfRuntime(results, runtime),
    ...clients.map(({ name }) =>
      verdict(results.programs.filter((cell) => cell.runtime === runtime && cell.client === name)),
    ),
  ]);
  return rows.length === 0 ? "" : table(["runtime", ...clientTitles(results, clients)], rows);
}

function byServer(results: Results, { clients, servers }: Listed): string {
  const rows = servers
    .filter(({ name }) => results.programs.some(({ server }) => server === name))
    .map(({ name, title }) => [
      results.serverVersions[name] ?? title,
      ...clients.map((client) =>
        verdict(results.programs.filter((cell) => cell.server === name && cell.client === client.name)),
      ),
    ]);
  return rows.length === 0 ? "" : table(["server", ...clientTitles(results, clients)], rows);
}

function bySuites({ suites, serverVersions }: Results, { servers }: Listed): string {
  const rows = servers
    .filter(({ name }) => suites.some(({ server }) => server === name))
    .map(({ name, title }) => [
      serverVersions[name] ?? title,
      verdict(suites.filter(({ server }) => server === name)),
    ]);
  return rows.length === 0 ? "" : table(["server", "tests of replicas and Sentinel"], rows);
}

function byFormat(results: Results): string {
  const head = [
    "runtime",
    ...formats.map((format) => formatTitles[format]),
    "copies of `require` and `import`",
    "`await using` in JavaScript",
  ];
  const rows = runtimesOf(results).map((runtime): Row => {
    const own = results.programs.filter((cell) => cell.runtime === runtime);
    const copies = own.map(({ report }) => report?.isOneCopy ?? null).filter((isOne) => isOne !== null);
    const usings = own.flatMap(({ report }) => (report === undefined ? [] : [report.hasAwaitUsing]));
    return [
      titleOfRuntime(results, runtime),
      ...formats.map((format) => verdict(own.filter((cell) => cell.format === format))),
      copies.length === 0 ? "—" : copies.every(Boolean) ? "1" : "2",
      usings.every(Boolean) ? "yes" : "no",
    ];
  });
  return rows.length === 0 ? "" : table(head, rows);
}

function byCompiler({ types }: Results): string {
  const rows = [...new Set(types.map(({ compiler }) => compiler))].map((compiler) => [
    `TypeScript ${compiler}`,
    ...settings.map(({ title }) =>
      verdict(types.filter((cell) => cell.compiler === compiler && cell.setting === title)),
    ),
  ]);
  return rows.length === 0 ? "" : table(["compiler", ...settings.map(({ title }) => title)], rows);
}

/** The verdict of all cells together. */
function verdict(cells: readonly { readonly outcome: Outcome }[]): string {
  const run = cells.filter(({ outcome }) => outcome.state !== "absent");
  if (run.length === 0) {
    return "—";
  }
  const failures = run.filter(({ outcome }) => outcome.state === "failed").length;
  return failures === 0 ? "yes" : failures === run.length ? "no" : `${failures} of ${run.length} fail`;
}

function runtimesOf({ programs }: Results): string[] {
  return [...new Set(programs.map(({ runtime }) => runtime))];
}

function titleOfRuntime({ programs }: Results, runtime: string): string {
  const version = programs.find((cell) => cell.runtime === runtime && cell.report !== undefined)?.report
    ?.version;
  return withVersion(runtime, version);
}

function clientTitles({ clientVersions }: Results, clients: readonly Client[]): string[] {
  return clients.map(({ name, title }) => withVersion(title, clientVersions[name]));
}

/** For example "Node 20.20.2" for "Node 20". */
function withVersion(title: string, version: string | undefined): string {
  return version === undefined ? title : `${title.replace(/ [\d.]+$/, "")} ${version}`;
}
