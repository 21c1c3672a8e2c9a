import type { CountedVote, Moment } from "./history.ts";
import { isOneRun } from "./rules/tenures.ts";
import type { Confirmed, Held, RunStory } from "./attempts.ts";

/** Of a quorum: whose votes stood for a lease at that moment, by what its process counted when it was granted, and extended. */
export function evidenceOf(run: RunStory, { process, ask, key, token }: Held, at: Moment): string[] {
  const own = ({ at: moment, key: other }: Confirmed): boolean => other === key && moment <= at;
  const election = run.elections
    .filter((each) => own(each) && each.token <= token && isOneRun(each.token, token))
    .reduce((one: (typeof run.elections)[number] | undefined, each) => {
      // By another process where it was transferred, or repeated.
      const isBetter = !one || (each.process === process ? 1 : 0) >= (one.process === process ? 1 : 0);
      return isBetter ? each : one;
    }, undefined);
  const extension = run.extensions.findLast(
    (each) => own(each) && each.process === process && each.at >= (election?.at ?? Infinity),
  );
  const who = `${process}#${ask}`;
  return [
    ...(election ? [`${who} was granted ${by(run, election, process)}`] : []),
    ...(extension ? [`${who} was last extended ${by(run, extension, process)}`] : []),
  ];
}

function by(run: RunStory, { at, process, votes }: Confirmed, expected: string): string {
  const where = process === expected ? "" : ` in ${process}`;
  return `at ${at.toFixed(3)} ms${where} by ${votes.map((vote) => told(run, vote)).join(", ")}`;
}

function told({ serverRuns, plan }: RunStory, { node, run: name, by: way, leftMs }: CountedVote): string {
  const server = serverRuns.find((each) => each.node === node && each.name === name);
  const since = server ? ` since ${server.since.toFixed(0)} ms` : "";
  const until = server && server.to < Infinity ? ` until ${server.to.toFixed(0)} ms` : "";
  const disk = plan.nodes[node]?.durable === true ? "durable, " : "";
  return `server ${node} (${disk}run ${name}${since}${until}, by ${way}, ${leftMs.toFixed(0)} ms left)`;
}
