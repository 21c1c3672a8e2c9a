import { connect } from "holdfast/connect";

import type { EngineDoctor } from "../engines.ts";
import { UnreachableError } from "../errors.ts";
import { checkNacos } from "./nacos-checks.ts";

/** Checks the servers that the URL names: their versions, clocks and number, and the access to them. */
export const examineNacos: EngineDoctor = async (url, { ttlMs }) => {
  const driver = await connect(url);
  try {
    const nodes = await driver.nodes();
    if (nodes.every(({ reachable }) => !reachable)) {
      const failures = nodes.map(({ node, error }) => `${node}: ${error}`);
      throw new UnreachableError(failures.join("; "));
    }
    const facts = { nodes, ttlMs, hasUser: /^[a-z]+:\/\/[^/?#]*@/i.test(url) };
    return { nodes: nodes.map(({ node }) => node), findings: checkNacos(facts) };
  } finally {
    await driver.close();
  }
};
