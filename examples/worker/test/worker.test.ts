import { fileURLToPath } from "node:url";

import { createService, newToken } from "@holdfast/server";
import { bundleForBrowsers, startWorkerd } from "@holdfast/test-kit/edge";
import { expect, test } from "vitest";

test("the worker handles an order once at a time, in workerd and without the modules of Node", async () => {
  const { token, sha256 } = newToken();
  const grants = [{ scope: "lock:acquire" as const, prefix: "order:" }];
  const service = await createService({ auth: { tokens: [{ name: "worker", sha256, grants }] } });
  const module = await bundleForBrowsers({
    source: 'export { default } from "./worker.ts"',
    folder: fileURLToPath(new URL("../src", import.meta.url)),
    conditions: ["@holdfast/source"],
  });
  const env = { LOCK_SERVICE: await service.listen({ port: 0 }), LOCK_TOKEN: token };
  const workerd = await startWorkerd({ module, env, compatibilityFlags: [] });
  const handle = async (): Promise<bigint> => {
    const response = await fetch(`${workerd.url}/555`);
    return BigInt(((await response.json()) as { fencingToken: string }).fencingToken);
  };
  const start = performance.now();
  const tokens = await Promise.all([handle(), handle(), handle()]);
  expect(new Set(tokens).size).toBe(3);
  expect(performance.now() - start).toBeGreaterThan(290); // three charges of 100 ms, one after another
  await workerd.stop();
  await service.close();
});
