import { isPeer, packageOf, type ContestantName } from "../../run/contestant-list.ts";

/** The class of a contestant's marks: a baseline, a peer, or Holdfast. */
export type Colour = "floor" | "peer" | "own";

export function colourOf(contestant: ContestantName): Colour {
  const used = packageOf(contestant);
  if (used === "holdfast") return "own";
  return isPeer(used) || used === "kazoo" ? "peer" : "floor";
}
