import { afterAll, beforeAll, expect, test } from "vitest";
import { readLeaseId } from "holdfast/http";

import { createService, type Service } from "../src/index.ts";
import { acquire, inspect, refusal, sendRequest } from "./support/service.ts";

let service: Service;
let url: string;

beforeAll(async () => {
  service = await createService();
  url = await service.listen({ port: 0 });
});

afterAll(() => service.close());

let count = 0;
const newKey = (): string => `order:${(count += 1)}`;

test("an invalid request is refused with the reason", async () => {
  const key = newKey();
  const bad: [string, string, unknown, RegExp][] = [
    ["POST", "/v1/leases?hold=connection", { key, attemptId: "a" }, /attemptId/],
    ["POST", "/v1/leases?hold=on", { key }, /hold/],
    ["POST", "/v1/leases", {}, /either `key` or `keys`/],
    ["POST", "/v1/leases", { key, keys: [key] }, /either `key` or `keys`/],
    ["POST", "/v1/leases", { key, ttlMs: 10 }, /ttlMs/],
    ["POST", "/v1/leases", { key, ttlMS: 1_000 }, /ttlMS/],
    ["POST", "/v1/leases", { key, mode: "semaphore" }, /`limit`/],
    ["POST", "/v1/leases", { key, mode: "semaphore", limit: 0 }, /limit/],
    ["POST", "/v1/leases", { key, labels: { a: "x".repeat(300) } }, /labels/],
    ["POST", "/v1/lock/break", { key, fencingToken: "seven", reason: "x" }, /fencingToken/],
    ["GET", "/v1/locks?limit=0", undefined, /limit/],
    ["GET", "/v1/events?key=a&prefix=b", undefined, /both/],
    ["POST", "/v1/leases", { key, ttl: 1 }, /^unknown field "ttl"$/],
    ["GET", "/v1/locks?prefx=order:", undefined, /^unknown query parameter "prefx"$/],
    ["GET", `/v1/lock?key=${key}&wait=1`, undefined, /"wait"/],
    ["GET", "/v1/events?prefx=order:", undefined, /"prefx"/],
    ["GET", "/v1/nodes?all=1", undefined, /"all"/],
    ["DELETE", "/v1/leases/1.x.y?force=1", undefined, /"force"/],
  ];
  const badKeys: typeof bad = [
    ["POST", "/v1/leases", { key: "" }, /key/],
    ["POST", "/v1/leases", { key: 5 }, /key/],
    ["POST", "/v1/leases", { key: "x".repeat(600) }, /512/],
    ["POST", "/v1/leases", { key: "ä".repeat(300) }, /has 600 bytes; .* 1 to 512 bytes/],
    ["POST", "/v1/leases", { keys: ["a", "ä".repeat(300)] }, /512 bytes/],
    ["POST", "/v1/leases", { key: "\ud800" }, /well-formed/],
    ["GET", `/v1/lock?key=${"x".repeat(600)}`, undefined, /512/],
  ];
  for (const [method, path, body, detail] of badKeys) {
    const problem = await refusal(url, method, path, body);
    expect(problem).toMatchObject({ status: 400, code: "invalid-key", outcome: "none", retryable: false });
    expect(problem.detail).toMatch(detail);
  }
  for (const [method, path, body, detail] of bad) {
    const problem = await refusal(url, method, path, body);
    expect(problem, `${path} ${JSON.stringify(body)}`).toMatchObject({
      status: 400,
      code: "invalid",
      outcome: "none",
      retryable: false,
    });
    expect(problem.detail).toMatch(detail);
  }
  expect(await refusal(url, "GET", "/v1/nothing")).toMatchObject({ status: 404, code: "not-found" });
});

test.each([
  ["PUT", "/v1/leases", "POST"],
  ["GET", "/v1/leases", "POST"],
  ["PATCH", "/v1/leases/1.x.y", "DELETE, GET"],
  ["GET", "/v1/leases/1.x.y/renew", "POST"],
  ["POST", "/healthz", "GET"],
  ["OPTIONS", "/v1/locks", "GET"],
])("the method %s of %s is refused with the methods that the path has", async (method, path, allowed) => {
  const { status, headers, body } = await sendRequest(url, method, path);
  expect([status, headers.get("allow")]).toEqual([405, allowed]);
  expect(body).toMatchObject({ code: "invalid", retryable: false, outcome: "none" });
});

test("a body without the type of JSON is refused with the header that it needs", async () => {
  const sent = { method: "POST", body: JSON.stringify({ key: newKey() }) };
  for (const type of ["application/x-www-form-urlencoded", "text/plain"]) {
    const reply = await fetch(`${url}/v1/leases`, { ...sent, headers: { "content-type": type } });
    expect(reply.status).toBe(415);
    expect(await reply.json()).toMatchObject({
      code: "invalid",
      detail: expect.stringMatching(/content-type: application\/json/) as unknown,
    });
  }
});

test("a made-up lease id is refused", async () => {
  const key = newKey();
  const { leaseId } = await acquire(url, { key });
  const [, secret] = leaseId.split(".") as [string, string, string];
  const made = (value: unknown, keys: unknown): string =>
    `1.${Buffer.from(JSON.stringify(value)).toString("base64url")}.${Buffer.from(JSON.stringify(keys)).toString("base64url")}`;
  for (const id of [
    "x",
    "1..",
    `2.${secret}.x`,
    made([], []),
    made([1000, ["a b", "1"]], [key]),
    made([1000, ["a", "-1"]], [key]),
  ]) {
    expect(await refusal(url, "DELETE", `/v1/leases/${encodeURIComponent(id)}`), id).toMatchObject({
      code: "not-found",
    });
  }
  const guessed = made([1_000, ["0".repeat(32), "1"]], [key]);
  expect(await refusal(url, "POST", `/v1/leases/${guessed}/renew`, {})).toMatchObject({ code: "lease-lost" });
  expect(await sendRequest(url, "DELETE", `/v1/leases/${guessed}`)).toMatchObject({
    body: { released: false },
  });
  const noKey = made([1_000, ["0".repeat(32), "1"]], ["x".repeat(600)]);
  expect(await refusal(url, "POST", `/v1/leases/${noKey}/renew`, {})).toMatchObject({ code: "invalid-key" });
  expect((await inspect(url, key)).holders).toHaveLength(1);
  expect(readLeaseId(leaseId)?.grants[0]?.key).toBe(key);
});
