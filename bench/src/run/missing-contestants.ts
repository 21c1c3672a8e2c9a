import { hasEtcd, hasMariaDb, hasPostgres, hasZooKeeper } from "@holdfast/test-kit/engines";
import { engineTitles, type Engine } from "../engines/engine.ts";
import type { ContestantName } from "./contestant-list.ts";
import { rivalsOf } from "./engine-contestants.ts";
import { hasKazoo } from "./kazoo.ts";

/** The contestants that cannot run a suite, with the reason. */
export interface MissingContestants {
  readonly contestants: readonly ContestantName[];
  readonly reason: string;
}

export const noQuorum: readonly MissingContestants[] = [
  { contestants: ["raw", "@verrou/core"], reason: "locks one server only" },
];

const isInstalled: Readonly<Record<Engine, boolean>> = {
  postgres: hasPostgres,
  mysql: hasMariaDb,
  etcd: hasEtcd,
  zookeeper: hasZooKeeper,
};

/** Without its server a suite has no contestants. */
export function missingOn(engine: Engine): readonly MissingContestants[] {
  if (!isInstalled[engine]) {
    const reason = `needs ${engineTitles[engine]}, which is not installed`;
    return [{ contestants: ["holdfast", ...rivalsOf[engine]], reason }];
  }
  if (engine !== "zookeeper" || hasKazoo()) return [];
  return [{ contestants: ["kazoo"], reason: "python3 or its package kazoo is missing" }];
}
