import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

import { exportJWK, generateKeyPair, SignJWT, type CryptoKey } from "jose";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { WireLease } from "holdfast/http";
import { http } from "holdfast/http";
import { createLocks } from "holdfast";

import { createService, newToken, type LogEntry, type Service } from "../src/index.ts";
import { sendRequest } from "./support/service.ts";

const [billing, support, operator] = [newToken(), newToken(), newToken()];
const issuer = "https://ci.example";
const audience = "holdfast";

let service: Service;
let url: string;
let keysServer: Server;
let signing: CryptoKey;
const log: LogEntry[] = [];

beforeAll(async () => {
  const pair = await generateKeyPair("ES256");
  signing = pair.privateKey;
  const jwk = { ...(await exportJWK(pair.publicKey)), kid: "one", alg: "ES256" };
  keysServer = createServer((_, answer) => answer.end(JSON.stringify({ keys: [jwk] }))).listen(
    0,
    "127.0.0.1",
  );
  await new Promise((resolve) => keysServer.once("listening", resolve));
  const { port } = keysServer.address() as AddressInfo;
  service = await createService({
    engine: "memory:",
    log: (entry) => log.push(entry),
    auth: {
      tokens: [
        {
          name: "billing",
          sha256: billing.sha256,
          grants: [
            { scope: "lock:acquire", prefix: "order:" },
            { scope: "lock:read", prefix: "order:" },
          ],
        },
        { name: "support", sha256: support.sha256, grants: [{ scope: "lock:read", prefix: "" }] },
        {
          name: "operator",
          sha256: operator.sha256,
          grants: [
            { scope: "lock:acquire", prefix: "" },
            { scope: "lock:read", prefix: "" },
            { scope: "lock:force", prefix: "" },
            { scope: "admin", prefix: "" },
          ],
        },
      ],
      jwt: [
        {
          issuer,
          audience,
          jwksUrl: `http://127.0.0.1:${port}/`,
          rules: [
            { subject: "repo:acme/", grants: [{ scope: "lock:acquire", prefix: "deploy:" }] },
            { subject: "repo:umbrella", grants: [{ scope: "lock:acquire", prefix: "deploy:" }] },
          ],
        },
      ],
    },
  });
  url = await service.listen({ port: 0, host: "0.0.0.0" });
});

afterAll(async () => {
  await service.close();
  keysServer.close();
});

const as = ({ token }: { token: string }): { authorization: string } => ({
  authorization: `Bearer ${token}`,
});

async function status(
  who: { token: string } | undefined,
  method: string,
  path: string,
  body?: object,
): Promise<number> {
  return (await sendRequest(url, method, path, body, who && as(who))).status;
}

async function signed(
  claims: { sub?: string; aud?: string; exp?: string },
  key: CryptoKey = signing,
): Promise<{ token: string }> {
  const { sub = "repo:acme/shop:main", aud = audience, exp = "1m" } = claims;
  const token = await new SignJWT({})
    .setProtectedHeader({ alg: "ES256", kid: "one" })
    .setIssuer(issuer)
    .setSubject(sub)
    .setAudience(aud)
    .setExpirationTime(exp)
    .sign(key);
  return { token };
}

test("without authentication only clients on this machine have access, by the machine's own name", async () => {
  const open = await createService();
  await expect(open.listen({ host: "0.0.0.0", port: 0 })).rejects.toThrow(/loopback/);
  const address = new URL(await open.listen({ port: 0 }));
  const { request } = await import("node:http");
  const response = await new Promise<number>((resolve) => {
    request(
      { host: address.hostname, port: address.port, path: "/v1/locks", headers: { host: "evil.example" } },
      (answer) => {
        answer.resume();
        resolve(answer.statusCode ?? 0);
      },
    ).end();
  });
  expect(response).toBe(403);
  await open.close();
});

test.each([
  ["two tokens with one hash", { name: "b", sha256: billing.sha256.toUpperCase(), grants: [] }, "different"],
  ["an unknown scope", { grants: [{ scope: "lock:delete", prefix: "" }] }, "expected the scope lock:acquire"],
  ["admin with a prefix", { grants: [{ scope: "admin", prefix: "a" }] }, "expected no prefix"],
])("%s: the service does not start, and names what was expected", async (_, token, message) => {
  const tokens = [{ name: "a", sha256: billing.sha256, grants: [] }];
  const other = { name: "b", sha256: support.sha256, ...token } as (typeof tokens)[number];
  await expect(createService({ auth: { tokens: [...tokens, other] } })).rejects.toThrow(message);
});

test("a request with an unknown token is refused", async () => {
  const response = await sendRequest(url, "POST", "/v1/leases", { key: "order:1" });
  expect(response).toMatchObject({ status: 401, body: { code: "unauthenticated", outcome: "none" } });
  expect(response.headers.get("www-authenticate")).toBe("Bearer");
  for (const token of ["wrong", billing.sha256, `${billing.token}x`, "a.b.c"]) {
    expect(await status({ token }, "GET", "/v1/locks"), token).toBe(401);
  }
  expect(await status(undefined, "GET", "/metrics")).toBe(401);
  for (const path of ["/healthz", "/readyz", "/openapi.json"]) {
    expect(await status(undefined, "GET", path), path).toBe(200);
  }
});

test("a principal has the rights of its scopes, for keys with their prefixes", async () => {
  const response = await sendRequest(url, "POST", "/v1/leases", { key: "order:2" }, as(billing));
  expect(response.status).toBe(201);
  const { leaseId, fencingToken } = response.body as WireLease;
  expect(await status(billing, "POST", "/v1/leases", { key: "stock:2" })).toBe(403);
  expect(await status(billing, "POST", "/v1/leases", { keys: ["order:3", "stock:3"] })).toBe(403);
  expect(await status(support, "POST", "/v1/leases", { key: "order:4" })).toBe(403);
  expect(await status(support, "POST", `/v1/leases/${leaseId}/renew`, {})).toBe(403);
  expect(await status(support, "DELETE", `/v1/leases/${leaseId}`)).toBe(403);
  expect(await status(support, "GET", "/v1/lock?key=order:2")).toBe(200);
  expect(await status(billing, "GET", "/v1/lock?key=stock:2")).toBe(403);
  expect(await status(billing, "GET", "/v1/events?key=stock:2")).toBe(403);
  for (const path of ["locks", "events"]) {
    for (const prefix of ["", "?prefix=", "?prefix=order", "?prefix=stock:"]) {
      expect(await status(billing, "GET", `/v1/${path}${prefix}`), `${path}${prefix}`).toBe(403);
    }
  }
  expect(await status(billing, "GET", "/v1/nodes")).toBe(403);
  expect(await status(billing, "GET", "/metrics")).toBe(403);
  const force = { key: "order:2", fencingToken, reason: "stuck" };
  expect(await status(billing, "POST", "/v1/lock/break", force)).toBe(403);
  expect(await status(operator, "GET", "/metrics")).toBe(200);
  await sendRequest(url, "POST", "/v1/leases", { key: "stock:5" }, as(operator));
  const { body } = await sendRequest(url, "GET", "/v1/locks?prefix=order:", undefined, as(billing));
  expect((body as { locks: { key: string }[] }).locks.map(({ key }) => key)).toEqual(["order:2"]);
  expect(await status(operator, "POST", "/v1/lock/break", force)).toBe(200);
});

test("a break leaves an audit record of the operator, the holder and the reason", async () => {
  const { body } = await sendRequest(
    url,
    "POST",
    "/v1/leases",
    { key: "order:6", owner: "job 6" },
    as(billing),
  );
  const { fencingToken } = body as WireLease;
  await sendRequest(
    url,
    "POST",
    "/v1/lock/break",
    { key: "order:6", fencingToken, reason: "it hangs" },
    as(operator),
  );
  const again = await sendRequest(
    url,
    "POST",
    "/v1/lock/break",
    { key: "order:6", fencingToken, reason: "it hangs" },
    as(operator),
  );
  expect(again).toMatchObject({ status: 412, body: { code: "fence-mismatch", fencingToken: null } });
  const records = log.filter(({ level, key }) => level === "audit" && key === "order:6");
  expect(records).toMatchObject([
    {
      event: "break",
      principal: "operator",
      holder: "job 6",
      reason: "it hangs",
      fencingToken,
      broken: true,
    },
    { broken: false },
  ]);
});

test("a principal cannot join another principal's attempt by its name", async () => {
  const body = { key: "order:7", attemptId: "a-7", waitMs: 0 };
  expect((await sendRequest(url, "POST", "/v1/leases", body, as(billing))).status).toBe(201);
  expect((await sendRequest(url, "POST", "/v1/leases", body, as(operator))).status).toBe(423);
  expect((await sendRequest(url, "POST", "/v1/leases", body, as(billing))).status).toBe(201);
});

test("an issuer's token has the rights of its subject", async () => {
  const ci = await signed({});
  expect(await status(ci, "POST", "/v1/leases", { key: "deploy:shop" })).toBe(201);
  expect(await status(ci, "POST", "/v1/leases", { key: "order:8" })).toBe(403);
  expect(
    await status(await signed({ sub: "repo:evil/shop:main" }), "POST", "/v1/leases", { key: "deploy:x" }),
  ).toBe(403);
  const statusOf = async (sub: string): Promise<number> =>
    status(await signed({ sub }), "POST", "/v1/leases", { key: `deploy:${sub}` });
  expect(await statusOf("repo:umbrella")).toBe(201);
  for (const sub of ["repo:umbrella-evil/shop", "repo:umbrella/shop", "repo:acme", "repo:acme-evil/shop"]) {
    expect(await statusOf(sub), sub).toBe(403); // a prefix ends with `:` or `/`
  }
  const other = await generateKeyPair("ES256");
  const unsigned = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${ci.token.split(".")[1]}.`;
  for (const bad of [
    await signed({ aud: "another" }),
    await signed({ exp: "-1m" }),
    await signed({}, other.privateKey),
    { token: unsigned },
  ]) {
    expect(await status(bad, "POST", "/v1/leases", { key: "deploy:x" })).toBe(401);
  }
});

test("the driver sends its token, and reports a refusal", async () => {
  const locks = createLocks(http(url, { token: billing.token }));
  await (await locks.acquire("order:9")).release();
  await expect(locks.acquire("stock:9")).rejects.toMatchObject({
    code: "engine-unavailable",
    retryable: false,
  });
  await locks.close();
});

test("no secret is in the log, in what is listed, in errors or in the metrics, and no key in the metrics", async () => {
  const { body } = await sendRequest(url, "POST", "/v1/leases", { key: "order:10" }, as(operator));
  const { leaseId } = body as WireLease;
  const secret = leaseId.split(".")[1] as string;
  const [, [token]] = JSON.parse(Buffer.from(secret, "base64url").toString()) as [number, [string]];
  const responses = [
    await sendRequest(url, "GET", "/v1/locks", undefined, as(operator)),
    await sendRequest(url, "GET", "/v1/lock?key=order:10", undefined, as(operator)),
    await sendRequest(url, "POST", "/v1/leases", { key: "order:10", waitMs: 0 }, as(operator)),
    await sendRequest(url, "POST", `/v1/leases/${leaseId}/renew`, { ttlMs: 1 }, as(operator)),
    await sendRequest(url, "DELETE", `/v1/leases/${leaseId}`, undefined, as(support)),
    await sendRequest(url, "GET", `/v1/leases/${leaseId}/nothing`, undefined, as(operator)),
    await sendRequest(url, "GET", "/metrics", undefined, as(operator)),
  ];
  const text = JSON.stringify([responses.map(({ body: one }) => one), log]);
  expect(token.length).toBeGreaterThan(20);
  for (const hidden of [secret, token, billing.token, operator.token]) {
    expect(text).not.toContain(hidden);
  }
  expect(responses.at(-1)?.body).toContain('group="order"');
  expect(responses.at(-1)?.body).not.toContain("order:10");
});

test("a watch without the right to read reports the reason", async () => {
  const locks = createLocks(http(url, { token: billing.token }));
  const events = locks.admin.watch("invoice:1")[Symbol.asyncIterator]();
  await expect(events.next()).rejects.toMatchObject({
    code: "engine-unavailable",
    retryable: false,
    message: expect.stringMatching(/"billing" may not do that to "invoice:1"/) as unknown,
  });
  await locks.close();
});
