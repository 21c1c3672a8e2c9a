import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";

import { leaseIdOf, readLeaseId } from "holdfast/http";
import { assert, describe, expect, test } from "vitest";

import { createService, newToken } from "../src/index.ts";
import { acquired, as, auth, ci, ends, open, opened, other } from "./support/limited-service.ts";
import { sendRequest } from "./support/service.ts";

describe("the start", () => {
  test("beyond loopback needs an engine, if only a declared one", async () => {
    const implicit = await createService({ auth });
    ends.push(() => implicit.close());
    await expect(implicit.listen({ host: "0.0.0.0", port: 0 })).rejects.toThrow(/HOLDFAST_URL.*memory:/);
    const explicit = await createService({ auth, engine: "memory:" });
    ends.push(() => explicit.close());
    expect(await explicit.listen({ host: "0.0.0.0", port: 0 })).toMatch(/^http/);
  });

  test("warns of unsigned lease ids with several principals, also in the findings", async () => {
    const admin = newToken();
    const tokens = [
      ...(auth.tokens ?? []),
      { name: "admin", sha256: admin.sha256, grants: [{ scope: "admin" as const, prefix: "" }] },
    ];
    const { url, log } = await open({ auth: { tokens } });
    expect(log).toContainEqual(expect.objectContaining({ level: "warn", event: "unsigned-lease-ids" }));
    const { body } = await sendRequest(url, "GET", "/v1/doctor", undefined, as(admin));
    expect(body).toMatchObject({
      findings: expect.arrayContaining([expect.objectContaining({ id: "unsigned-lease-ids" })]) as unknown,
    });
    const signed = await open({ auth: { tokens }, leaseKey: "0123456789abcdef" });
    const one = await open({ auth: { tokens: tokens.slice(2) } });
    expect([...signed.log, ...one.log].filter(({ level }) => level === "warn")).toEqual([]);
    one.service.replaceAuth({ tokens });
    expect(one.log.filter(({ event }) => event === "unsigned-lease-ids")).toHaveLength(1);
    const later = await sendRequest(one.url, "GET", "/v1/doctor", undefined, as(admin));
    expect(JSON.stringify(later.body)).toContain("unsigned-lease-ids");
  });
});

test("refusals of tokens, scopes and limits leave one line of the log for each client, without secrets", async () => {
  const { url, log } = await open({ requestsPerSecond: 20 });
  const { leaseId } = await acquired(url, ci, { key: "job:1" });
  const wrong = newToken();
  const ask = async (): Promise<void> => {
    await sendRequest(url, "GET", "/v1/me", undefined, as(wrong));
    await sendRequest(url, "GET", "/v1/locks?prefix=x", undefined, as(ci));
  };
  await ask();
  await Promise.all(Array.from({ length: 100 }, ask));
  const warnings = log.filter(({ level, event }) => level === "warn" && event === "refused");
  expect(warnings.map(({ code, principal }) => [code, principal])).toEqual([
    ["unauthenticated", undefined],
    ["forbidden", "ci"],
    ["rate-limited", "ci"],
  ]);
  expect(log.filter(({ level, event }) => level === "debug" && event === "refused").length).toBeGreaterThan(
    50,
  );
  for (const secret of [wrong.token, ci.token, leaseId]) {
    expect(JSON.stringify(log)).not.toContain(secret);
  }
});

test("refusals of a client with many addresses leave a limited number of lines", async () => {
  const { url, log } = await open();
  for (let number = 1; number <= 150; number += 1) {
    const localAddress = `127.0.1.${number}`;
    const outgoing = request(new URL("/v1/me", url), { agent: false, localAddress });
    outgoing.end();
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    expect(response.resume().statusCode).toBe(401);
  }
  await sendRequest(url, "GET", "/v1/locks?prefix=x", undefined, as(ci));
  const lines = log.filter(({ level, event }) => level === "warn" && event === "refused");
  expect(lines).toHaveLength(101);
  expect(lines.at(-1)).toMatchObject({ code: "forbidden", principal: "ci" });
});

test("refusals in streams and in renewals of many leases leave a line of the log too", async () => {
  const { url, log } = await open({ maxWaitsOfKey: 1, maxLeasesOfOne: 1, requestsPerSecond: 100 });
  const refused = (code: string, principal: string): unknown =>
    log.find((line) => line.level === "warn" && line["code"] === code && line["principal"] === principal);
  const { leaseId } = await acquired(url, other, { key: "job:1" });
  const body = { key: "job:1", waitMs: 500 };
  const streams = await Promise.all([1, 2].map(() => opened(url, ci, "/v1/leases", body)));
  await Promise.all(streams.map(({ ended }) => ended));
  expect(refused("too-many-waiters", "ci")).toBeDefined();
  await (
    await opened(url, other, "/v1/leases?hold=connection", { key: "job:2" })
  ).ended;
  expect(refused("rate-limited", "other")).toBeDefined();
  const parts = readLeaseId(leaseId);
  assert(parts);
  const foreign = leaseIdOf({
    ...parts,
    grants: parts.grants.map((grant) => ({ ...grant, key: "other:1" })),
  });
  await sendRequest(url, "POST", "/v1/renew", { leases: [{ leaseId: foreign }] }, as(ci));
  expect(refused("forbidden", "ci")).toMatchObject({ route: "/v1/renew" });
});

test("without authentication neither a proxy nor a page of another origin has access", async () => {
  const { url } = await open({ auth: undefined, allowedOrigins: ["https://shop.example"] });
  const statusOf = async (headers: Record<string, string>): Promise<number> =>
    (await sendRequest(url, "GET", "/v1/locks", undefined, headers)).status;
  expect(await statusOf({ "x-forwarded-for": "203.0.113.7" })).toBe(403);
  expect(await statusOf({ via: "1.1 proxy" })).toBe(403);
  expect(await statusOf({ "sec-fetch-site": "cross-site" })).toBe(403);
  expect(await statusOf({ origin: "https://evil.example" })).toBe(403);
  expect(await statusOf({ "sec-fetch-site": "cross-site", origin: "https://shop.example" })).toBe(200);
  expect(await statusOf({ "sec-fetch-site": "same-origin", origin: url })).toBe(200);
});
