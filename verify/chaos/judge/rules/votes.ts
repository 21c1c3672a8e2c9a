import type { CountedVote, Moment } from "../history.ts";
import type { Violation } from "../rules.ts";
import type { Confirmed, Election, RunStory, ServerRun } from "../attempts.ts";

/** What the guard adds to the largest TTL. */
const guardMarginMs = 3_000;
/** Uptimes are whole seconds: one that began at the end of a second says a second too much. */
const uptimeGrainMs = 1_000;
/** By what clocks may differ in speed. */
const drift = 0.01;
/** A server that is killed may answer for so long. */
const dyingMs = 20;

/** Of a quorum: what its guard keeps from counting was not counted, in no grant and in no extension. */
export function votesMayCount(run: RunStory): Violation[] {
  const runs = new Map(run.serverRuns.map((each) => [idOf(each.node, each.name), each]));
  const asked = asksByGrant(run);
  const known = new Known();
  const found: Violation[] = [];
  for (const confirmed of inOrder(run)) {
    const askedAt = "token" in confirmed ? asked.get(grantOf(confirmed)) : undefined;
    for (const vote of confirmed.votes) {
      const server = runs.get(idOf(vote.node, vote.run));
      const reason = server
        ? whyNot({ run, server, at: confirmed.at, askedAt, knewItBefore: known.isBefore(confirmed, vote) })
        : "which nobody had started";
      if (reason !== undefined) {
        const text = `${whoOf(confirmed)} counted ${voteNamed(vote)}, ${reason}`;
        found.push({ rule: "votes", at: confirmed.at, key: confirmed.key, text });
      }
      known.add(confirmed, vote);
    }
  }
  return found;
}

interface Judged {
  readonly run: RunStory;
  readonly server: ServerRun;
  readonly at: Moment;
  /** Of a grant, if a lease came of it. */
  readonly askedAt: Moment | undefined;
  /** The process had counted a vote of an earlier run of this server. */
  readonly knewItBefore: boolean;
}

function whyNot({ run, server, at, askedAt, knewItBefore }: Judged): string | undefined {
  const { node, since, to } = server;
  if (askedAt !== undefined && to + dyingMs < askedAt) {
    return `which had been killed at ${told(to)}, before it was asked at ${told(askedAt)}`;
  }
  if (run.plan.nodes[node]?.durable === true) {
    return undefined;
  }
  // Who saw the restart waits on its own clock; who did not has nothing but what the server says of its uptime.
  const ownMs = run.plan.maxTtlMs + guardMarginMs;
  const shortestMs = (knewItBefore ? ownMs : ownMs - uptimeGrainMs) * (1 - drift);
  return at - since < shortestMs && (knewItBefore || !wasSet(run, node, since, at))
    ? `which was started empty at ${told(since)}, ${(at - since).toFixed(0)} ms before; a guard waits for ${shortestMs.toFixed(0)} ms at least`
    : undefined;
}

/** Whether the server's clock was set, as its uptime is told by it. */
function wasSet({ plan, faults }: RunStory, node: number, since: Moment, at: Moment): boolean {
  return faults.some(({ number, kind, from, to }) => {
    const isSet = /^step (a|the) clock/.test(kind) && nodesOf(plan, number).includes(node);
    return isSet && ((since <= from && from <= at) || (since <= to && to <= at));
  });
}

function nodesOf({ storms }: RunStory["plan"], number: number): readonly number[] {
  return storms.flatMap(({ faults }) => faults).find((fault) => fault.number === number)?.nodes ?? [];
}

/** By grant: when a lease of it was asked for first. */
function asksByGrant({ stories }: RunStory): Map<string, Moment> {
  const asked = new Map<string, Moment>();
  for (const story of stories) {
    const grant = grantOf(story);
    asked.set(grant, Math.min(asked.get(grant) ?? Infinity, story.askedAt));
  }
  return asked;
}

function grantOf({ process, key, token }: Pick<Election, "process" | "key" | "token">): string {
  return `${process} ${key} ${token}`;
}

/** Which runs each process had counted a vote of. */
class Known {
  readonly #runs = new Map<string, Set<string>>();

  add({ process }: Confirmed, { node, run }: CountedVote): void {
    const id = idOf(node, process);
    const runs = this.#runs.get(id) ?? new Set();
    this.#runs.set(id, runs.add(run));
  }

  isBefore({ process }: Confirmed, { node, run }: CountedVote): boolean {
    const runs = this.#runs.get(idOf(node, process)) ?? new Set();
    return runs.size > (runs.has(run) ? 1 : 0);
  }
}

function inOrder({ elections, extensions }: RunStory): (Election | Confirmed)[] {
  return [...elections, ...extensions].sort((one, other) => one.at - other.at);
}

function whoOf(confirmed: Election | Confirmed): string {
  return "token" in confirmed
    ? `the grant ${confirmed.token} of ${confirmed.process}`
    : `an extension of ${confirmed.process}`;
}

function voteNamed({ node, run, by }: CountedVote): string {
  return `the vote of server ${node} (run ${run}, by ${by})`;
}

function told(at: Moment): string {
  return `${at.toFixed(3)} ms`;
}

function idOf(node: number, name: string): string {
  return `${node} ${name}`;
}
