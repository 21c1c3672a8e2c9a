import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { startRedis } from "@holdfast/test-kit";
import { expect, test } from "vitest";

import { onRedis } from "../../support/servers.ts";

const program = join(import.meta.dirname, "../../support/retained-bytes.mjs");
/** A pair allocates about 10 000 bytes. One `Map` whose entries come and go with each pair retains 1 000 of them. */
const mostRetained = 700;

onRedis("the objects of an acquire and its release", () => {
  test("do not outlive the pair", async () => {
    const server = await startRedis();
    try {
      const args = ["--max-semi-space-size=16", "--min-semi-space-size=16", program, String(server.port)];
      const { stdout } = await promisify(execFile)(process.execPath, [...args, "60000"]);
      expect(Number(stdout)).toBeGreaterThan(0);
      expect(Number(stdout)).toBeLessThan(mostRetained);
    } finally {
      await server.stop();
    }
  });
});
