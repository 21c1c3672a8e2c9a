import { isPeer, packageOf, type Entrant } from "../../run/contestant-list.ts";

/** The class of a contestant's marks: what others are held against, a peer, or ours. */
export type Colour = "floor" | "peer" | "own";

export function colourOf(entrant: Entrant): Colour {
  const used = packageOf(entrant);
  if (used === "holdfast") return "own";
  return isPeer(used) ? "peer" : "floor";
}
