import { afterAll, beforeAll, expect, test } from "vitest";

import { createService, newToken, type Service } from "../src/index.ts";
import { sendRequest } from "./support/service.ts";

const shop = "https://shop.example";
const { token, sha256 } = newToken();
const auth = { tokens: [{ name: "page", sha256, grants: [{ scope: "lock:acquire" as const, prefix: "" }] }] };

let service: Service;
let url: string;

beforeAll(async () => {
  service = await createService({ auth, allowedOrigins: [shop] });
  url = await service.listen({ port: 0 });
});

afterAll(() => service.close());

function preflight(address: string, origin: string): ReturnType<typeof sendRequest> {
  return sendRequest(address, "OPTIONS", "/v1/leases", undefined, {
    origin,
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type",
  });
}

function sharedWith(reply: { readonly headers: Headers }): string | null {
  return reply.headers.get("access-control-allow-origin");
}

test("a preflight of an allowed origin is answered without credentials", async () => {
  const reply = await preflight(url, shop);
  expect(reply.status).toBe(204);
  expect(sharedWith(reply)).toBe(shop);
  expect(reply.headers.get("access-control-allow-methods")).toBe("GET, POST, DELETE");
  expect(reply.headers.get("access-control-allow-headers")).toBe("authorization, content-type");
  expect(reply.headers.get("vary")).toBe("origin");
});

test("responses, refusals and event streams are shared with an allowed origin", async () => {
  const headers = { origin: shop, authorization: `Bearer ${token}` };
  const stream = { ...headers, accept: "text/event-stream" };
  const replies = [
    await sendRequest(url, "POST", "/v1/leases", { key: "a" }, headers),
    await sendRequest(url, "POST", "/v1/leases", { key: "a", waitMs: 10 }, stream),
    await sendRequest(url, "POST", "/v1/leases", { key: "a" }, { origin: shop }),
  ];
  expect(replies.map(({ status }) => status)).toEqual([201, 200, 401]);
  expect(replies.map(sharedWith)).toEqual([shop, shop, shop]);
});

test("nothing is shared with another origin", async () => {
  for (const origin of ["https://evil.example", `${shop}.evil.example`, "http://shop.example", "null"]) {
    const reply = await preflight(url, origin);
    expect(sharedWith(reply), origin).toBeNull();
    expect(reply.headers.has("access-control-allow-methods"), origin).toBe(false);
  }
});

test("without the option a preflight is refused", async () => {
  const closed = await createService();
  const address = await closed.listen({ port: 0 });
  const reply = await preflight(address, "http://localhost");
  expect(reply.status).toBe(403);
  expect(sharedWith(reply)).toBeNull();
  await closed.close();
});

test("an invalid origin is refused, and every origin is allowed only with authentication", async () => {
  await expect(createService({ allowedOrigins: [`${shop}/`] })).rejects.toThrow(/without a path, or \*/);
  await expect(createService({ allowedOrigins: ["*"] })).rejects.toThrow(/expected authentication for \*/);
  await (await createService({ auth, allowedOrigins: ["*"] })).close();
});
