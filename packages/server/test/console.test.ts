import { request } from "node:http";
import { brotliDecompressSync } from "node:zlib";

import { afterEach, expect, test } from "vitest";

import { createService, newToken, type Service, type ServiceOptions } from "../src/index.ts";
import { acquire, openStream, refusal, sendRequest } from "./support/service.ts";

const services: Service[] = [];

afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.close()));
});

async function listening(options: ServiceOptions = {}): Promise<string> {
  const service = await createService(options);
  services.push(service);
  return service.listen({ port: 0 });
}

interface Reply {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: Buffer;
}

/** A request as sent: without decompression, with any header. */
function plainRequest(url: string, method = "GET", headers: Record<string, string> = {}): Promise<Reply> {
  return new Promise((resolve, reject) => {
    request(url, { method, headers }, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(parts) });
      });
    })
      .on("error", reject)
      .end();
  });
}

test("every page of the console is the same file, which is checked for changes at each load", async () => {
  const url = await listening();
  const [first, ...others] = await Promise.all(
    ["", "lock?key=a%2Fb", "owners", "contention", "nodes", "doctor", "audit", "login"].map((page) =>
      plainRequest(`${url}/console/${page}`),
    ),
  );
  expect(first).toMatchObject({
    status: 200,
    headers: { "content-type": "text/html; charset=utf-8", "cache-control": "no-cache" },
  });
  for (const other of others) {
    expect(other.body.equals(first?.body ?? Buffer.of())).toBe(true);
  }
  const etag = String(first?.headers["etag"]);
  expect(await plainRequest(`${url}/console/`, "GET", { "if-none-match": `W/${etag}` })).toMatchObject({
    status: 304,
    body: Buffer.of(),
  });
});

test("assets have a hash in their names, may be cached for ever, and are compressed for clients that accept it", async () => {
  const url = await listening();
  const page = (await plainRequest(`${url}/console/`)).body.toString();
  const assets = [...page.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g)].map(([, name]) => String(name));
  expect(assets.length).toBeGreaterThanOrEqual(3);
  for (const name of assets) {
    const plain = await plainRequest(`${url}/console/${name}`);
    expect(plain.headers["cache-control"]).toBe("public, max-age=31536000, immutable");
    expect(plain.headers["content-encoding"]).toBeUndefined();
    const small = await plainRequest(`${url}/console/${name}`, "GET", { "accept-encoding": "gzip, br" });
    expect(small.headers["content-encoding"]).toBe("br");
    expect(brotliDecompressSync(small.body).equals(plain.body)).toBe(true);
    const refused = await plainRequest(`${url}/console/${name}`, "GET", { "accept-encoding": "br;q=0" });
    expect(refused.headers["content-encoding"]).toBeUndefined();
    const head = await plainRequest(`${url}/console/${name}`, "HEAD");
    expect([head.body.length, head.headers["content-length"]]).toEqual([0, String(plain.body.length)]);
  }
});

test("the address without a slash leads to the console, relative to the path of a proxy", async () => {
  const url = await listening();
  expect(await plainRequest(`${url}/console?filter=x`)).toMatchObject({
    status: 308,
    headers: { location: "./console/?filter=x" },
  });
});

test.each(["nothing", "assets/nothing.js", "..%2f..%2fpackage.json", "manifest.json", "index.html.br"])(
  "there is no %s",
  async (name) => {
    expect(await refusal(await listening(), "GET", `/console/${name}`)).toMatchObject({
      status: 404,
      code: "not-found",
    });
  },
);

test("the console loads from its own service only, and no other page embeds it", async () => {
  const url = await listening();
  const { headers, body } = await plainRequest(`${url}/console/`);
  expect(headers["content-security-policy"]).toMatch(/^default-src 'self'; .*frame-ancestors 'none'$/);
  expect(headers["content-security-policy"]).not.toContain("unsafe");
  expect(headers).toMatchObject({ "x-content-type-options": "nosniff", "referrer-policy": "no-referrer" });
  expect(body.toString()).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|https?:\/\//i);
});

test("without authentication the console answers only by the name of this machine", async () => {
  const url = await listening();
  const rebound = await plainRequest(`${url}/console/`, "GET", { host: "evil.example" });
  expect(rebound.status).toBe(403);
});

test("with authentication the files are open, and the data needs a token with its scopes", async () => {
  const [reader, operator] = [newToken(), newToken()];
  const url = await listening({
    auth: {
      tokens: [
        { name: "reader", sha256: reader.sha256, grants: [{ scope: "lock:read", prefix: "order:" }] },
        { name: "operator", sha256: operator.sha256, grants: [{ scope: "admin", prefix: "" }] },
      ],
    },
  });
  expect((await plainRequest(`${url}/console/`)).status).toBe(200);
  expect((await plainRequest(`${url}/console/..%2fv1/locks`)).status).toBe(404);
  expect((await sendRequest(url, "GET", "/v1/me")).status).toBe(401);
  const as = (token: string): Promise<{ body: unknown }> =>
    sendRequest(url, "GET", "/v1/me", undefined, { authorization: `Bearer ${token}` });
  expect((await as(reader.token)).body).toEqual({
    principal: "reader",
    authentication: true,
    scopes: [{ scope: "lock:read", prefixes: ["order:"] }],
    readOnly: false,
    offers: ["audit", "doctor"],
    limits: { waits: 20_000, waitsOfKey: 500, leases: 1_000, streams: 200, requestsPerSecond: null },
    version: expect.stringMatching(/^\d+\.\d+\.\d+$/) as string,
    engine: { name: "memory", guarantee: "process" },
  });
  expect((await as(operator.token)).body).toMatchObject({ scopes: [{ scope: "admin", prefixes: [""] }] });
});

test("a read-only service shows everything and changes nothing", async () => {
  const url = await listening({ readOnly: true });
  expect((await sendRequest(url, "GET", "/v1/me")).body).toMatchObject({ readOnly: true });
  for (const [method, path, body] of [
    ["POST", "/v1/leases", { key: "k" }],
    ["POST", "/v1/lock/break", { key: "k", fencingToken: "1", reason: "because" }],
    ["POST", "/v1/lock/limit", { key: "k", limit: 3 }],
    ["DELETE", "/v1/leases/x", undefined],
  ] as const) {
    expect(await refusal(url, method, path, body)).toMatchObject({ status: 403, code: "forbidden" });
  }
  const fence = await sendRequest(url, "POST", "/v1/fence/check", { key: "k", fencingToken: "1" });
  expect(fence.body).toEqual({ fence: "stale" });
});

test("without the console its paths do not exist", async () => {
  expect((await plainRequest(`${await listening({ console: false })}/console/`)).status).toBe(404);
});

test("no secret of a lease is in a response that the console reads", async () => {
  const url = await listening();
  const lease = await acquire(url, { key: "order:1", owner: "billing" });
  const secrets = [lease.leaseId, ...tokensOf(lease.leaseId)];
  const paths = [
    "me",
    "locks",
    "lock?key=order:1",
    "nodes",
    "owners",
    "processes",
    "history?key=order:1",
    "contention",
    "hold-times",
    "audit",
  ];
  const replies = await Promise.all(paths.map((path) => sendRequest(url, "GET", `/v1/${path}`)));
  expect(replies.map(({ status }) => status)).toEqual(paths.map(() => 200));
  const stream = await openStream(url, "GET", "/v1/events?key=order:1");
  const first = await stream.next();
  stream.disconnect();
  expect(first?.data).toMatchObject({ key: "order:1" });
  for (const shown of [...replies.map(({ body }) => body), first]) {
    const text = JSON.stringify(shown);
    for (const secret of secrets) {
      expect(text).not.toContain(secret);
    }
  }
});

/** The tokens inside a lease id, which is base64url of JSON, perhaps with a signature. */
function tokensOf(leaseId: string): string[] {
  const texts = leaseId.split(".").map((part) => Buffer.from(part, "base64url").toString());
  const tokens = texts.flatMap((text) => [...text.matchAll(/[0-9a-f]{32}/g)].map(String));
  expect(tokens.length).toBeGreaterThan(0);
  return tokens;
}
