import { afterAll, beforeAll, expect, test } from "vitest";
import { startRedis, type RedisServer } from "@holdfast/test-kit";

import * as scripts from "../../../../src/drivers/redis/protocol/scripts.generated.ts";
import { onRedis } from "../../../support/servers.ts";

onRedis("the generated scripts", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());

  for (const script of Object.values(scripts)) {
    test(`the server names ${script.name} by the SHA-1 that the client uses`, async () => {
      expect(await server.client().script("LOAD", script.source)).toBe(script.sha1);
    });
  }
});
