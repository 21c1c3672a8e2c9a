import { afterAll, beforeAll, expect, test } from "vitest";
import type { WireLease, WireLocks } from "holdfast/http";

import { createService, newToken, type LogEntry, type Service } from "../src/index.ts";
import type { Scope } from "../src/principal.ts";
import { sendRequest } from "./support/service.ts";

const [onCall, support, operator] = [newToken(), newToken(), newToken()];
const reason = "the pod died";
const log: LogEntry[] = [];
let service: Service;
let url: string;

beforeAll(async () => {
  const grants = (prefix: string, ...scopes: Scope[]): { scope: Scope; prefix: string }[] =>
    scopes.map((scope) => ({ scope, prefix }));
  service = await createService({
    log: (entry) => log.push(entry),
    auth: {
      tokens: [
        { name: "on-call", sha256: onCall.sha256, grants: grants("order:", "lock:read", "lock:force") },
        { name: "support", sha256: support.sha256, grants: grants("", "lock:read") },
        {
          name: "operator",
          sha256: operator.sha256,
          grants: grants("", "lock:acquire", "lock:read", "lock:force"),
        },
      ],
    },
  });
  url = await service.listen({ port: 0 });
});

afterAll(() => service.close());

function send(by: { token: string }, path: string, body?: object): ReturnType<typeof sendRequest> {
  const authorization = `Bearer ${by.token}`;
  return sendRequest(url, body ? "POST" : "GET", path, body, { authorization });
}

async function take(key: string): Promise<{ key: string; fencingToken: string }> {
  const { body } = await send(operator, "/v1/leases", { key, owner: "pod-7" });
  return { key, fencingToken: (body as WireLease).fencingToken };
}

test("a break by owner ends the grants that the principal may break, and reports the others", async () => {
  const [order, stock] = [await take("order:70"), await take("stock:70")];
  const breakOwner = (by: { token: string }, more: object = {}): ReturnType<typeof sendRequest> =>
    send(by, "/v1/owners/break", { owner: "pod-7", reason, ...more });
  expect((await breakOwner(support)).status).toBe(403);
  expect((await breakOwner(operator, { reason: "" })).status).toBe(400);
  expect((await breakOwner(onCall, { locks: [stock] })).body).toEqual({
    results: [{ ...stock, broken: false, code: "forbidden" }],
    complete: true,
  });
  expect((await breakOwner(onCall)).body).toEqual({
    results: [{ ...order, broken: true, auditId: "1" }],
    complete: true,
  });
  expect((await breakOwner(operator, { locks: [stock, order], by: "ada" })).body).toEqual({
    results: [
      { ...stock, broken: true, auditId: "2" },
      { ...order, broken: false },
    ],
    complete: true,
  });
  expect(((await send(operator, "/v1/locks")).body as WireLocks).locks).toEqual([]);
  const { body } = await send(operator, "/v1/audit?limit=1");
  expect(body).toMatchObject({
    records: [
      { action: "break", ...stock, principal: "operator/ada", owner: "pod-7", reason, result: "broken" },
    ],
    cursor: "2",
  });
  const last = await take("order:71");
  const { body: answer } = await send(onCall, "/v1/lock/break", { ...last, reason });
  expect(answer).toEqual({ broken: true, auditId: "3" });
  expect((await send(operator, "/v1/audit?id=3")).body).toMatchObject({ records: [{ id: "3", ...last }] });
  expect((await send(onCall, "/v1/audit")).status).toBe(403);
  expect((await send(onCall, "/v1/audit?key=order:70")).body).toMatchObject({
    records: [{ ...order, principal: "on-call", result: "broken" }],
    cursor: null,
  });
  expect((await send(operator, "/v1/audit?id=x")).status).toBe(400);
  expect((await send(operator, "/v1/audit?cursor=x")).status).toBe(400);
  expect(log.filter(({ event }) => event === "break")).toMatchObject([
    { level: "audit", principal: "on-call", ...order, holder: "pod-7", reason, broken: true },
    { level: "audit", principal: "operator", ...stock, broken: true },
    { level: "audit", principal: "operator", ...order, broken: false },
    { level: "audit", principal: "on-call", ...last, broken: true },
  ]);
});
