import { engineTitles, type Engine } from "../engines/engine.ts";
import { missingOn } from "../run/missing-contestants.ts";
import { rivalsOf } from "../run/engine-contestants.ts";
import type { RedisTopology } from "../run/contestant-list.ts";
import type { SuiteDescription } from "./suite.ts";

/** The parts of a description that depend on where a suite runs. */
type Place = Pick<SuiteDescription, "name" | "title" | "absent" | "reference"> & {
  readonly topology: RedisTopology | Engine;
};

/** On Redis the reference is the commands by hand. On another engine it is the poller of a row for a hot key, or else the engine's own lock. */
export function placeOf(form: "uncontended" | "hot", title: string, engine: Engine | null): Place {
  if (engine === null) return { name: form, title, absent: [], reference: "raw", topology: "server" };
  const [own, other] = rivalsOf[engine];
  return {
    name: `${engine}-${form}`,
    title: `${title}, on ${engineTitles[engine]}`,
    absent: missingOn(engine),
    reference: form === "hot" && other?.endsWith("-poller") === true ? other : own,
    topology: engine,
  };
}
