import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { startRedis, waitUntil, type RedisServer } from "@holdfast/test-kit";
import { EngineError } from "holdfast";
import { connect } from "holdfast/connect";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";

import { BoundedDoctor } from "../src/doctor/bounded.ts";
import { diagnose, type Diagnosis } from "../src/doctor/index.ts";
import { redactor } from "../src/doctor/redact.ts";
import {
  consoleRoutes,
  createService,
  newToken,
  type ConsoleUser,
  type ServiceOptions,
} from "../src/index.ts";
import { refusal, sendRequest, startInstance } from "./support/service.ts";

const ends: (() => unknown)[] = [];
const diagnosis: Diagnosis = { topology: "server", nodes: ["a"], findings: [] };
const password = "s3cr:t%2Fkey";
let redis: RedisServer;
let redisUrl: string;

beforeAll(async () => {
  redis = await startRedis({ args: ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"] });
  await redis.client().call("ACL", "SETUSER", "locks", "on", `>${decodeURIComponent(password)}`, "~*", "&*", "+@all"); // prettier-ignore
  redisUrl = `redis://locks:${password}@127.0.0.1:${redis.port}`;
});

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) {
    await end();
  }
});

afterAll(() => redis.stop());

async function serviceWith(options: ServiceOptions): Promise<string> {
  const service = await createService(options);
  ends.push(() => service.close());
  return service.listen({ port: 0 });
}

async function diagnosisOf(url: string, headers?: Record<string, string>): Promise<Diagnosis> {
  const { status, body } = await sendRequest(url, "GET", "/v1/doctor", undefined, headers);
  expect(status, JSON.stringify(body)).toBe(200);
  return body as Diagnosis;
}

const levelsOf = ({ findings }: Diagnosis): Record<string, string> =>
  Object.fromEntries(findings.map(({ id, level }) => [id, level]));

test("one diagnosis answers concurrent requests", async () => {
  let runs = 0;
  const url = await serviceWith({
    doctor: async () => {
      runs += 1;
      return diagnosis;
    },
  });
  const replies = await Promise.all([1, 2, 3].map(() => diagnosisOf(url)));
  expect(replies).toEqual([diagnosis, diagnosis, diagnosis]);
  expect(runs).toBe(1);
});

test("failed checks are a failure of the engine, with the reason", async () => {
  const url = await serviceWith({ doctor: () => Promise.reject(new Error("connect ECONNREFUSED")) });
  expect(await refusal(url, "GET", "/v1/doctor")).toMatchObject({
    status: 503,
    code: "engine-unavailable",
    detail: expect.stringContaining("connect ECONNREFUSED") as string,
  });
});

test("a request does not wait longer than the limit, and no second run starts before the end of the first", async () => {
  const started: ((result: Diagnosis) => void)[] = [];
  const run = (): Promise<Diagnosis> => new Promise((resolve) => started.push(resolve));
  const doctor = new BoundedDoctor(run, { limitMs: 20, freshMs: 20 });
  await expect(doctor.diagnose()).rejects.toThrow("no result within 20 ms");
  await expect(doctor.diagnose()).rejects.toThrow("no result within 20 ms");
  expect(started).toHaveLength(1);
  started[0]?.(diagnosis);
  expect(await doctor.diagnose()).toBe(diagnosis);
  await waitUntil(() => {
    void doctor.diagnose().catch(() => undefined);
    return started.length === 2;
  }, "a new run starts when the result is old");
});

test("the service of `npm start` checks its engine, for the scope admin only, and shows no secret", async () => {
  const memory = await startInstance();
  ends.push(() => memory.kill("SIGTERM"));
  expect(await diagnosisOf(memory.url)).toMatchObject({
    topology: "memory",
    findings: [{ id: "in-process", level: "risk" }],
  });
  const instance = await startInstance({ HOLDFAST_URL: redisUrl });
  ends.push(() => instance.kill("SIGTERM"));
  const found = await diagnosisOf(instance.url);
  expect(found).toMatchObject({ topology: "server", nodes: [`127.0.0.1:${redis.port}`] });
  expect(levelsOf(found)).toMatchObject({ eviction: "critical", persistence: "critical" });
  expect(JSON.stringify(found)).not.toMatch(/s3cr|t(%2F|.)key/);
  const [reader, admin] = [newToken(), newToken()];
  const url = await serviceWith({
    engine: redisUrl,
    auth: {
      tokens: [
        { name: "reader", sha256: reader.sha256, grants: [{ scope: "lock:read", prefix: "" }] },
        { name: "admin", sha256: admin.sha256, grants: [{ scope: "admin", prefix: "" }] },
      ],
    },
  });
  const { status } = await sendRequest(url, "GET", "/v1/doctor", undefined, { authorization: `Bearer ${reader.token}` }); // prettier-ignore
  expect(status).toBe(403);
  expect(levelsOf(await diagnosisOf(url, { authorization: `Bearer ${admin.token}` }))).toHaveProperty(
    "eviction",
  );

  const byService = await diagnose(url.replace("//", `//:${admin.token}@`));
  expect(byService.topology).toBe("service");
  expect(levelsOf(byService)).toMatchObject({ eviction: "critical" });
  const refused = await diagnose(url, { token: reader.token });
  expect(refused.findings).toMatchObject([
    { id: "not-checked", observed: "the service replies 403: Expected the scope admin" },
  ]);
});

test("a service with a driver reports what the driver knows, and what was not read", async () => {
  const url = await serviceWith({ engine: await connect(redisUrl) });
  const { topology, findings } = await diagnosisOf(url);
  expect(topology).toBe("redis");
  expect(findings).toMatchObject([{ id: "not-checked", command: expect.stringContaining("holdfast doctor") as string }]); // prettier-ignore
});

test("a mounted console has the checks of its driver or of the application, for users of all keys", async () => {
  const driver = await connect(redisUrl);
  const user: ConsoleUser = { name: "ada" };
  const authorize = (): ConsoleUser => user;
  const plain = consoleRoutes(driver, { authorize });
  const own = consoleRoutes(driver, { authorize, doctor: () => diagnose(redisUrl) });
  const restricted = consoleRoutes(driver, { authorize: () => ({ ...user, prefix: "shop:" }) });
  const urls = await Promise.all(
    [plain, own, restricted].map(async ({ handler, close }) => {
      const server = createServer(handler).listen(0, "127.0.0.1");
      ends.push(close, () => server.close());
      await once(server, "listening");
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    }),
  );
  expect(levelsOf(await diagnosisOf(urls[0] ?? ""))).toEqual({ "not-checked": "info" });
  expect(levelsOf(await diagnosisOf(urls[1] ?? ""))).toHaveProperty("eviction");
  expect(await refusal(urls[2] ?? "", "GET", "/v1/doctor")).toMatchObject({ code: "forbidden" });
});

test("a server that stopped is unreachable, without a long wait", async () => {
  const stopped = await startRedis();
  ends.push(() => stopped.stop());
  stopped.freeze();
  const begun = performance.now();
  const failure: unknown = await diagnose(`redis://127.0.0.1:${stopped.port}`).catch((error: unknown) => error); // prettier-ignore
  stopped.thaw();
  expect(failure).toMatchObject({ name: "UnreachableError", message: expect.stringContaining(`${stopped.port}: `) as string }); // prettier-ignore
  expect(failure).not.toBeInstanceOf(EngineError);
  expect(performance.now() - begun).toBeLessThan(15_000);
});

test("the secrets of a URL do not appear in a text", () => {
  const url = "redis+sentinel://me:a%2Fb%3Ac@h1,h2/main?sentinelPassword=other%2Bone&token=third";
  const redact = redactor(url, "fourth");
  const text = "AUTH me a/b:c, a%2Fb%3Ac, other+one, third, fourth at h1 for main";
  expect(redact(text)).toBe("AUTH me ***, ***, ***, ***, *** at h1 for main");
});
