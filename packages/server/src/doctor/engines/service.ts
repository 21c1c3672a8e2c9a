import type { EngineDoctor } from "../engines.ts";
import { errorMessage, UnreachableError } from "../errors.ts";
import { levels, type Finding, type Level } from "../finding.ts";

const timeoutMs = 25_000; // the service limits its own checks

/** Asks a lock service for the findings about the servers of its engine. */
export const examineService: EngineDoctor = async (url, { token }) => {
  const address = new URL(url);
  const { host, username, password } = address;
  const bearer = decodeURIComponent(password || username) || token;
  address.username = "";
  address.password = "";
  address.search = "";
  address.pathname = `${address.pathname.replace(/\/$/, "")}/v1/doctor`;
  const response = await fetch(address, {
    headers: { ...(bearer !== undefined && bearer !== "" && { authorization: `Bearer ${bearer}` }) },
    redirect: "error", // the token is for this service only
    signal: AbortSignal.timeout(timeoutMs),
  }).catch((error: unknown) => {
    throw new UnreachableError(`${host}: ${errorMessage((error as Error).cause ?? error)}`);
  });
  const body: unknown = await response.json().catch(() => undefined);
  const { nodes, findings, detail } = (body ?? {}) as Record<string, unknown>;
  if (response.ok && Array.isArray(nodes) && Array.isArray(findings)) {
    return { nodes: nodes.map(String), findings: findings.map(findingOf) };
  }
  const reason = typeof detail === "string" ? `: ${detail.slice(0, 500)}` : "";
  return { nodes: [host], findings: [refused(host, `the service replies ${response.status}${reason}`)] };
};

function refused(node: string, observed: string): Finding {
  return {
    level: "info",
    id: "not-checked",
    node,
    observed,
    impact: "the checks of the engine's servers did not run",
    fix: "use a token with the scope admin, or the URL of the engine",
  };
}

/** A finding of a reply, whose parts may be anything. */
function findingOf(one: unknown): Finding {
  const fields = (one ?? {}) as Readonly<Record<string, unknown>>;
  const text = (name: string): string => (typeof fields[name] === "string" ? fields[name] : "");
  return {
    level: levels.includes(fields["level"] as Level) ? (fields["level"] as Level) : "info",
    id: text("id"),
    node: text("node"),
    observed: text("observed"),
    impact: text("impact"),
    fix: text("fix"),
    ...(typeof fields["command"] === "string" && { command: text("command") }),
  };
}
