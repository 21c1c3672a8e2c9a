import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

import { waitUntil } from "@holdfast/test-kit";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { afterAll, describe, expect, test } from "vitest";

import type { AuthOptions } from "../src/index.ts";
import { acquired, as, open, opened, problemOf } from "./support/limited-service.ts";
import { sendRequest } from "./support/service.ts";

describe("issuers of signed tokens", () => {
  const audience = "holdfast";
  const servers: Server[] = [];

  afterAll(() => {
    for (const server of servers) {
      server.close().closeAllConnections();
    }
  });

  /** An issuer with its key server. @param replies false: the server never replies */
  async function issuerOf(
    name: string,
    replies = true,
  ): Promise<{
    settings: NonNullable<AuthOptions["jwt"]>[number];
    token: (sub: string) => Promise<{ token: string }>;
    asked: () => number;
  }> {
    const { privateKey, publicKey } = await generateKeyPair("ES256");
    const jwk = { ...(await exportJWK(publicKey)), kid: "one", alg: "ES256" };
    let asked = 0;
    const server = createServer((_, response) => {
      asked += 1;
      if (replies) {
        response.end(JSON.stringify({ keys: [jwk] }));
      }
    }).listen(0, "127.0.0.1");
    servers.push(server);
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    return {
      settings: {
        issuer: name,
        audience,
        jwksUrl: `http://127.0.0.1:${port}/`,
        rules: [{ subject: "repo:acme/", grants: [{ scope: "lock:acquire", prefix: "job:" }] }],
      },
      token: async (sub) => ({
        token: await new SignJWT({})
          .setProtectedHeader({ alg: "ES256", kid: "one" })
          .setIssuer(name)
          .setSubject(sub)
          .setAudience(audience)
          .setExpirationTime("5m")
          .sign(privateKey),
      }),
      asked: () => asked,
    };
  }

  test("an outage of one refuses no token of another, and a token is checked by the issuer that it names", async () => {
    const [hangs, works] = [await issuerOf("https://a.example", false), await issuerOf("https://b.example")];
    const { url } = await open({ auth: { jwt: [hangs.settings, works.settings] } });
    const begun = performance.now();
    await acquired(url, await works.token("repo:acme/shop"), { key: "job:1" });
    expect(hangs.asked()).toBe(0);
    for (const token of ["a.b.c", "...", `${(await hangs.token("x")).token.split(".")[0]}.e30.x`]) {
      expect((await sendRequest(url, "GET", "/v1/me", undefined, as({ token }))).status).toBe(401);
    }
    expect(hangs.asked()).toBe(0);
    expect(performance.now() - begun).toBeLessThan(4_000); // the request to an issuer that hangs ends after 5 s
    const fromOther = await sendRequest(
      url,
      "GET",
      "/v1/me",
      undefined,
      as(await hangs.token("repo:acme/x")),
    );
    expect(fromOther).toMatchObject({
      status: 401,
      body: { detail: expect.stringMatching(/unavailable/) as string },
    });
  });

  test("of one name with different audiences are apart", async () => {
    const [hangs, works] = [await issuerOf("https://e.example", false), await issuerOf("https://e.example")];
    const { url } = await open({
      auth: { jwt: [{ ...hangs.settings, audience: "another" }, works.settings] },
    });
    await acquired(url, await works.token("repo:acme/shop"), { key: "job:1" });
    expect(hangs.asked()).toBe(0);
  });

  test("a rule that takes the grants of one subject ends its streams", async () => {
    const { settings, token } = await issuerOf("https://d.example");
    const { url, service } = await open({ auth: { jwt: [settings] } });
    const [mine, theirs] = [await token("repo:acme/shop"), await token("repo:acme/other")];
    await acquired(url, theirs, { key: "job:1" });
    const streams = await Promise.all(
      [mine, theirs].map((who) => opened(url, who, "/v1/leases", { key: "job:1", waitMs: 30_000 })),
    );
    await waitUntil(() => streams.every(({ text }) => text().includes("waiting")), "both wait");
    const rules = [{ subject: "repo:acme/shop", grants: [] }, ...settings.rules];
    expect(service.replaceAuth({ jwt: [{ ...settings, rules }] })).toBe(1);
    await streams[0]?.ended;
    expect(streams[0]?.text()).toContain("revoked");
    expect(service.replaceAuth({ jwt: [{ ...settings, jwksUrl: `${settings.jwksUrl}new`, rules }] })).toBe(1);
  });

  test("all subjects of one rule share the limits", async () => {
    const issuer = await issuerOf("https://c.example");
    const { url } = await open({ auth: { jwt: [issuer.settings] }, maxLeasesOfOne: 2 });
    for (const branch of ["one", "two"]) {
      await acquired(url, await issuer.token(`repo:acme/${branch}`), { key: `job:${branch}` });
    }
    expect(await problemOf(url, await issuer.token("repo:acme/three"), { key: "job:three" })).toMatchObject({
      code: "rate-limited",
      detail: expect.stringContaining("https://c.example#repo:acme/") as string,
    });
  });
});
