import { connect } from "holdfast/connect";

import type { EngineDoctor } from "../engines.ts";
import { UnreachableError } from "../errors.ts";
import { checkZooKeeper } from "./zookeeper-checks.ts";

/** Checks the servers that the URL names: their roles, versions and number. */
export const examineZooKeeper: EngineDoctor = async (url) => {
  const driver = await connect(url);
  try {
    const nodes = await driver.nodes();
    if (nodes.every(({ reachable }) => !reachable)) {
      const failures = nodes.map(({ node, error }) => `${node}: ${error}`);
      throw new UnreachableError(failures.join("; "));
    }
    return { nodes: nodes.map(({ node }) => node), findings: checkZooKeeper(nodes) };
  } finally {
    await driver.close();
  }
};
