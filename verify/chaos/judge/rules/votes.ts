import type { CountedVote, Instant } from "../history.ts";
import type { Violation } from "../rule.ts";
import { trustsDurable } from "../../plan/redis-engines.ts";
import type { MajorityConfirmation, MajorityGrant, RunHistory, ServerRun } from "../attempts.ts";

/** The time that the guard adds to the largest TTL. */
const guardMarginMs = 3_000;
/** An uptime is in whole seconds. If a run starts at the end of a second, its uptime is up to one second too large. */
const uptimeGrainMs = 1_000;
/** The largest difference in speed between two clocks. */
const drift = 0.01;
/** A killed server may still reply for this time. */
const dyingMs = 20;

/** No grant and no extension of a quorum counts a vote that its guard must exclude. */
export function checkVotes(run: RunHistory): Violation[] {
  const runs = new Map(run.serverRuns.map((each) => [runKey(each.node, each.name), each]));
  const requestTimes = requestTimeByGrant(run);
  const known = new CountedRuns();
  const found: Violation[] = [];
  for (const confirmed of byTime(run)) {
    const requestedAt = "token" in confirmed ? requestTimes.get(grantKey(confirmed)) : undefined;
    for (const vote of confirmed.votes) {
      const server = runs.get(runKey(vote.node, vote.run));
      const reason = server
        ? ineligibleReason({
            run,
            server,
            confirmed,
            requestedAt,
            sawEarlierRun: known.hasEarlierRun(confirmed, vote),
          })
        : "which was never started";
      if (reason !== undefined) {
        const text = `${describeConfirmation(confirmed)} counted ${describeVote(vote)}, ${reason}`;
        found.push({ rule: "votes", at: confirmed.at, key: confirmed.key, text });
      }
      known.add(confirmed, vote);
    }
  }
  return found;
}

interface JudgedVote {
  readonly run: RunHistory;
  readonly server: ServerRun;
  readonly confirmed: MajorityConfirmation;
  /** The time of the request, if the vote is part of a grant with a lease. */
  readonly requestedAt: Instant | undefined;
  /** The process had counted a vote of an earlier run of this server. */
  readonly sawEarlierRun: boolean;
}

function ineligibleReason({
  run,
  server,
  confirmed: { at, process },
  requestedAt,
  sawEarlierRun,
}: JudgedVote): string | undefined {
  const { node, to } = server;
  if (requestedAt !== undefined && to + dyingMs < requestedAt) {
    return `which had been killed at ${formatMs(to)}, before the request at ${formatMs(requestedAt)}`;
  }
  const { since } = lastUntrusted(run, server, process);
  // A process that saw the restart waits by its own clock. Another process knows only the uptime that the server reports.
  const ownMs = run.plan.maxTtlMs + guardMarginMs;
  const shortestMs = (sawEarlierRun ? ownMs : ownMs - uptimeGrainMs) * (1 - drift);
  return at - since < shortestMs && (sawEarlierRun || !wasClockSet(run, node, since, at))
    ? `which may have lost grants at its start at ${formatMs(since)}, ${(at - since).toFixed(0)} ms before; a guard waits for at least ${shortestMs.toFixed(0)} ms`
    : undefined;
}

/**
 * The latest run of the server that the process must assume to have lost grants at its start. A process that trusts durable servers
 * follows restarts without a loss, as long as it may have seen the run before.
 */
function lastUntrusted({ processes }: RunHistory, server: ServerRun, process: string): ServerRun {
  const client = Number(/^client-(\d+)\./.exec(process)?.[1]);
  const openedAt = processes.get(process)?.openedAt ?? Infinity;
  let run = server;
  while (trustsDurable(client) && run.earlier && openedAt < run.earlier.to) {
    run = run.earlier;
  }
  return run;
}

/** Whether the clock of the server was set, because its uptime depends on that clock. */
function wasClockSet({ plan, faults }: RunHistory, node: number, since: Instant, at: Instant): boolean {
  return faults.some(({ faultId, kind, from, to }) => {
    const isSet = /^step (a|the) clock/.test(kind) && nodesOf(plan, faultId).includes(node);
    return isSet && ((since <= from && from <= at) || (since <= to && to <= at));
  });
}

function nodesOf({ storms }: RunHistory["plan"], number: number): readonly number[] {
  return storms.flatMap(({ faults }) => faults).find((fault) => fault.faultId === number)?.nodes ?? [];
}

/** For each grant the time of the first request for one of its leases. */
function requestTimeByGrant({ attempts }: RunHistory): Map<string, Instant> {
  const requestTimes = new Map<string, Instant>();
  for (const attempt of attempts) {
    const grant = grantKey(attempt);
    requestTimes.set(grant, Math.min(requestTimes.get(grant) ?? Infinity, attempt.requestedAt));
  }
  return requestTimes;
}

function grantKey({ process, key, token }: Pick<MajorityGrant, "process" | "key" | "token">): string {
  return `${process} ${key} ${token}`;
}

/** The server runs of which each process has counted a vote. */
class CountedRuns {
  readonly #runs = new Map<string, Set<string>>();

  add({ process }: MajorityConfirmation, { node, run }: CountedVote): void {
    const id = runKey(node, process);
    const runs = this.#runs.get(id) ?? new Set();
    this.#runs.set(id, runs.add(run));
  }

  hasEarlierRun({ process }: MajorityConfirmation, { node, run }: CountedVote): boolean {
    const runs = this.#runs.get(runKey(node, process)) ?? new Set();
    return runs.size > (runs.has(run) ? 1 : 0);
  }
}

function byTime({ majorityGrants, extensions }: RunHistory): (MajorityGrant | MajorityConfirmation)[] {
  return [...majorityGrants, ...extensions].sort((one, other) => one.at - other.at);
}

function describeConfirmation(confirmed: MajorityGrant | MajorityConfirmation): string {
  return "token" in confirmed
    ? `the grant ${confirmed.token} of ${confirmed.process}`
    : `an extension of ${confirmed.process}`;
}

function describeVote({ node, run, via }: CountedVote): string {
  return `the vote of server ${node} (run ${run}, by ${via})`;
}

function formatMs(at: Instant): string {
  return `${at.toFixed(3)} ms`;
}

function runKey(node: number, name: string): string {
  return `${node} ${name}`;
}
