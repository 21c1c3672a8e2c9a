import type { CountedVote, Instant } from "./history.ts";
import { isSameGrantRun } from "./rules/tenures.ts";
import type { MajorityConfirmation, GrantedAttempt, RunHistory } from "./attempts.ts";

/** The votes of a quorum that supported a lease at a moment: the votes of its grant and of its last extension. */
export function voteEvidence(
  run: RunHistory,
  { process, requestId, key, token }: GrantedAttempt,
  at: Instant,
): string[] {
  const concernsLease = ({ at: moment, key: other }: MajorityConfirmation): boolean =>
    other === key && moment <= at;
  const grant = run.majorityGrants
    .filter(
      (each) => concernsLease(each) && each.token <= token && isSameGrantRun(run.plan, each.token, token),
    )
    .reduce((one: (typeof run.majorityGrants)[number] | undefined, each) => {
      // After a transfer or a repeat, another process extends the lease.
      const isBetter = !one || (each.process === process ? 1 : 0) >= (one.process === process ? 1 : 0);
      return isBetter ? each : one;
    }, undefined);
  const extension = run.extensions.findLast(
    (each) => concernsLease(each) && each.process === process && each.at >= (grant?.at ?? Infinity),
  );
  const subject = `${process}#${requestId}`;
  return [
    ...(grant ? [`${subject} was granted ${describeVotes(run, grant, process)}`] : []),
    ...(extension ? [`${subject} was last extended ${describeVotes(run, extension, process)}`] : []),
  ];
}

function describeVotes(
  run: RunHistory,
  { at, process, votes }: MajorityConfirmation,
  expected: string,
): string {
  const processNote = process === expected ? "" : ` in ${process}`;
  return `at ${at.toFixed(3)} ms${processNote} by ${votes.map((vote) => describeVote(run, vote)).join(", ")}`;
}

function describeVote(
  { serverRuns }: RunHistory,
  { node, run: name, via, remainingMs }: CountedVote,
): string {
  const server = serverRuns.find((candidate) => candidate.node === node && candidate.name === name);
  const since = server ? ` since ${server.since.toFixed(0)} ms` : "";
  const until = server && server.to < Infinity ? ` until ${server.to.toFixed(0)} ms` : "";
  const disk = server?.durable === true ? "durable, " : "";
  return `server ${node} (${disk}run ${name}${since}${until}, by ${via}, ${remainingMs.toFixed(0)} ms left)`;
}
