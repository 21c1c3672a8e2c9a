import type { Example } from "./example.ts";

/** Two schedulers, of whom one works; when it resigns the other goes on. */
export const election: Example = async (here, there, say) => {
  const [one, other] = [here.election("scheduler"), there.election("scheduler")];
  const term = await one.campaign();
  say("the first leads");
  const next = other.campaign();
  const seen = await other.leader();
  say(seen?.fencingToken === term.fencingToken ? "and the second sees it" : "and the second does not see it");
  await one.resign();
  const nextTerm = await next;
  say("the second leads");
  say(nextTerm.fencingToken > term.fencingToken ? "its number is larger" : "its number is not larger");
  await other.resign();
};
