import type { EventEmitter } from "node:events";
import { connect } from "holdfast/connect";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import {
  makeCertificates,
  rejection,
  startRedis,
  stablePort,
  waitUntil,
  type Certificates,
  type RedisServer,
} from "@holdfast/test-kit";

import { onRedis } from "../../support/servers.ts";
import {
  atEnd,
  cleanUp,
  clientOf,
  escaped,
  failures,
  libraries,
  open,
  secret,
  shown,
  worksBy,
} from "./connect-fixture.ts";

let server: RedisServer;
let tlsPort: number;
let certificates: Certificates;

onRedis("connect by rediss:", () => {
  beforeAll(async () => {
    certificates = await makeCertificates();
    tlsPort = await stablePort();
    server = await startRedis({ args: certificates.serverArgs(tlsPort) });
    await server.client().call("ACL", "SETUSER", "app", "on", `>${secret}`, "~*", "&*", "+@all");
  });

  afterEach(cleanUp);

  afterAll(async () => {
    await server.stop();
    await certificates[Symbol.asyncDispose]();
  });

  describe.each(libraries)("by %s", (client) => {
    test("rediss: accepts a server whose certificate is verified", async () => {
      const url = `rediss://127.0.0.1:${tlsPort}?tlsCaFile=${encodeURIComponent(certificates.caFile)}`;
      expect(await worksBy(url, { client })).toBe(true);
      expect(await worksBy(url.replace("127.0.0.1", "localhost"), { client })).toBe(true);
    });

    test.each([
      ["signed by an unknown authority", {}, /certificate/],
      ["for another name", { tlsServername: "other.example" }, /other\.example/],
    ])("rediss: sends nothing to a server with a certificate %s", async (_what, more, why) => {
      const reported = failures();
      const tlsCaFile = "tlsServername" in more ? certificates.caFile : undefined;
      const locks = await open(`rediss://app:${escaped}@127.0.0.1:${tlsPort}`, {
        client,
        tlsCaFile,
        commandTimeoutMs: 300,
        ...more,
      });
      const { error } = await rejection(locks.tryAcquire("key"));
      expect(error).toMatchObject({ code: "engine-unavailable" });
      expect((error as Error).message).toMatch(/^Redis at 127\.0\.0\.1:\d+\/0 is unreachable: /);
      expect((error as Error).message).toMatch(why);
      expect(reported.join()).toMatch(why);
      expect(shown(error) + reported.join()).not.toContain("Geheim");
    });

    test("rediss: accepts any certificate with tlsVerify=false, and warns", async () => {
      const warned: string[] = [];
      const listen = (warning: Error & { code?: string }): void => void warned.push(warning.code ?? "");
      process.on("warning", listen);
      atEnd(async () => void process.off("warning", listen));
      expect(await worksBy(`rediss://127.0.0.1:${tlsPort}?tlsVerify=false`, { client })).toBe(true);
      expect(warned).toContain("HOLDFAST_TLS_NOT_VERIFIED");
    });

    test("rediss: sends the client's certificate if the server requires one", async () => {
      const port = await stablePort();
      const strict = await startRedis({
        args: certificates.serverArgs(port, { requireClientCertificate: true }),
      });
      atEnd(() => strict.stop());
      const { caFile, certFile, keyFile } = certificates;
      const options = { client, tlsCaFile: caFile, commandTimeoutMs: 300 };
      const own = { tlsCertFile: certFile, tlsKeyFile: keyFile };
      expect(await worksBy(`rediss://127.0.0.1:${port}`, { ...options, ...own })).toBe(true);
      const without = await open(`rediss://127.0.0.1:${port}`, options);
      expect((await rejection(without.tryAcquire("key"))).error).toMatchObject({
        code: "engine-unavailable",
      });
    });
  });

  // The server sends an alert, which may still arrive after the client has closed the connection.
  test("rediss: a second error of a failed connection does not end the process", async () => {
    const reported: unknown[] = [];
    const client = await clientOf("ioredis", `rediss://127.0.0.1:${tlsPort}`, (error) => {
      reported.push(error);
      const { stream } = client as object as { stream: EventEmitter };
      reported.push(stream.listenerCount("error"));
    });
    await waitUntil(() => reported.length > 1, "the connection has failed twice");
    expect(reported.slice(0, 2)).toEqual([expect.objectContaining({ code: "SELF_SIGNED_CERT_IN_CHAIN" }), 1]);
  });

  test("a certificate file that cannot be read is named in the error", async () => {
    await expect(connect("rediss://127.0.0.1?tlsCaFile=/nowhere/ca.pem")).rejects.toThrow(
      'Expected `tlsCaFile` to be a file that can be read, got "/nowhere/ca.pem" (ENOENT)',
    );
  });
});
