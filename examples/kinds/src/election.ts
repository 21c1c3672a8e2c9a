import type { Example } from "./example.ts";

/** Of two schedulers, one works. When the leader resigns, the other takes over. */
export const election: Example = async (firstProcess, secondProcess, print) => {
  const [one, other] = [firstProcess.election("scheduler"), secondProcess.election("scheduler")];
  const term = await one.campaign();
  print("the first leads");
  const next = other.campaign();
  const seen = await other.leader();
  print(
    seen?.fencingToken === term.fencingToken ? "and the second sees it" : "and the second does not see it",
  );
  await one.resign();
  const nextTerm = await next;
  print("the second leads");
  print(nextTerm.fencingToken > term.fencingToken ? "its number is larger" : "its number is not larger");
  await other.resign();
};
