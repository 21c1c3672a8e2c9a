import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { expect, test } from "vitest";

import { onPostgres, startPostgres } from "../../support/postgres-server.ts";

const program = fileURLToPath(new URL("../../../../../examples/transaction/dist/main.js", import.meta.url));

onPostgres("the example of a fenced transaction", () => {
  test("loses deposits of late workers without assertHeld, and none with it", async () => {
    const server = await startPostgres();
    try {
      const { stdout } = await promisify(execFile)(process.execPath, [program, server.url]);
      const [without, fenced] = stdout.trim().split("\n");
      expect(without).toMatch(/^without assertHeld: 16 deposits committed, [1-9]\d* of them lost$/);
      expect(fenced).toBe("with assertHeld: 14 deposits committed, 0 of them lost");
    } finally {
      await server.stop();
    }
  });
});
