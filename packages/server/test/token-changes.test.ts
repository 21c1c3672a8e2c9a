import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { mkdtemp, rename, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

import { startRedis, waitUntil } from "@holdfast/test-kit";
import type { WireLease } from "holdfast/http";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

import { createService, followAuthFile, type AuthOptions } from "../src/index.ts";
import { acquired, as, auth, ci, ends, entry, open, opened, other } from "./support/limited-service.ts";
import { sendRequest, startInstance, type ServiceInstance } from "./support/service.ts";

describe("a change of the tokens", () => {
  const reading: AuthOptions = { tokens: [entry("other", other, "job:")] };

  test("ends the streams and waits of a token that is no longer there, and no others", async () => {
    const { url, service } = await open();
    await acquired(url, other, { key: "job:1" });
    const mine = await Promise.all([
      opened(url, ci, "/v1/events?prefix=job:"),
      opened(url, ci, "/v1/leases", { key: "job:1", waitMs: 60_000 }),
      opened(url, ci, "/v1/leases?hold=connection", { key: "job:2" }),
    ]);
    const theirs = await opened(url, other, "/v1/events?prefix=job:");
    await waitUntil(
      () => mine.every(({ text }) => text() !== "") && theirs.text() !== "",
      "the streams have begun",
    );
    expect(service.replaceAuth(reading)).toBe(3);
    await Promise.all(mine.map(({ ended }) => ended));
    for (const { text } of mine) {
      expect(text()).toMatch(/event: problem\ndata: .*revoked.*"code":"unauthenticated"/);
    }
    expect((await sendRequest(url, "GET", "/v1/me", undefined, as(ci))).status).toBe(401);
    expect((await sendRequest(url, "GET", "/v1/me", undefined, as(other))).status).toBe(200);
    const held = await sendRequest(url, "GET", "/v1/lock?key=job:2", undefined, as(other));
    expect(held.body).toMatchObject({ holders: [{}] }); // its client may still work, so that it is left to expire
    await acquired(url, other, { key: "job:3" });
    expect(theirs.text()).not.toContain("problem");
  });

  test("ends those of a token with other grants, and refuses invalid tokens", async () => {
    const { url, service } = await open();
    const stream = await opened(url, ci, "/v1/events?prefix=job:");
    expect(() => service.replaceAuth({ tokens: [] })).toThrow(/expected at least one token/);
    expect(service.replaceAuth(auth)).toBe(0);
    expect(service.replaceAuth({ tokens: [entry("ci", ci, "other:"), ...(reading.tokens ?? [])] })).toBe(1);
    await stream.ended;
    expect((await sendRequest(url, "GET", "/v1/locks?prefix=job:", undefined, as(ci))).status).toBe(403);
    const unauthenticated = await open({ auth: undefined });
    expect(() => unauthenticated.service.replaceAuth(auth)).toThrow(/with authentication/);
  });

  test("ends a request whose body was not complete", async () => {
    const { url, service } = await open();
    const text = JSON.stringify({ key: "job:1" });
    const begun = ["/v1/leases", "/v1/leases?hold=connection"].map((path) => {
      const headers = { "content-type": "application/json", "content-length": text.length, ...as(ci) };
      const outgoing = request(new URL(path, url), { method: "POST", agent: false, headers });
      outgoing.write(text.slice(0, 3));
      return outgoing;
    });
    await pause(200);
    service.replaceAuth(reading);
    const statuses = begun.map(async (outgoing) => {
      outgoing.end(text.slice(3));
      const [response] = (await once(outgoing, "response")) as [IncomingMessage];
      outgoing.destroy();
      return response.statusCode;
    });
    expect(await Promise.all(statuses)).toEqual([401, 401]);
  });

  describe("in the file", () => {
    let folder: string;
    let file: string;
    let instance: ServiceInstance | undefined;

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), "holdfast-doors-"));
      file = join(folder, "auth.json");
    });

    afterEach(async () => {
      await instance?.kill("SIGKILL");
      instance = undefined;
    });

    afterAll(() => rm(folder, { recursive: true, force: true }));

    async function replaceFile(text: string): Promise<void> {
      await writeFile(`${file}.new`, text);
      await rename(`${file}.new`, file);
    }

    test("is read again, also on SIGHUP, and one with an error changes nothing", async () => {
      await replaceFile(JSON.stringify(auth));
      const running = await startInstance({ HOLDFAST_AUTH_FILE: file });
      instance = running;
      const statusOf = async (who: { token: string }): Promise<number> =>
        (await sendRequest(running.url, "GET", "/v1/me", undefined, as(who))).status;
      expect([await statusOf(ci), await statusOf(other)]).toEqual([200, 200]);
      await replaceFile('{"tokens": [');
      await waitUntil(() => running.logged().includes("auth-not-reloaded"), "the error is in the log");
      expect([await statusOf(ci), await statusOf(other)]).toEqual([200, 200]);
      await replaceFile(JSON.stringify(reading));
      await waitUntil(async () => (await statusOf(ci)) === 401, "the token is revoked");
      expect(await statusOf(other)).toBe(200);
      await writeFile(file, JSON.stringify(auth));
      running.child.kill("SIGHUP");
      await waitUntil(async () => (await statusOf(ci)) === 200, "the token is back");
      expect(running.logged()).not.toContain(ci.token);
      expect(running.logged()).not.toContain(ci.sha256);
    });
  });

  test("is followed whatever the time of the file is, and by each service", async () => {
    const folder = await mkdtemp(join(tmpdir(), "holdfast-doors-"));
    ends.push(() => rm(folder, { recursive: true, force: true }));
    const file = join(folder, "auth.json");
    const replaceToken = async (token: { sha256: string }): Promise<void> => {
      await writeFile(file, JSON.stringify({ tokens: [entry("ci", token, "job:")] }));
      await utimes(file, 0, 0);
    };
    await replaceToken(other);
    const [one, two] = [await open(), await open()];
    ends.push(followAuthFile(one.service, file));
    const end = followAuthFile(two.service, file);
    const statusOf = async (who: { token: string }): Promise<number> =>
      (await sendRequest(one.url, "GET", "/v1/me", undefined, as(who))).status;
    expect([await statusOf(ci), await statusOf(other)]).toEqual([401, 200]); // it had changed before
    await pause(200); // the file is watched now
    end();
    await replaceToken(ci);
    await waitUntil(async () => (await statusOf(other)) === 401, "the token is revoked");
  });

  test("with two signing keys, lease ids of both are valid, and no others", async () => {
    const redis = await startRedis();
    ends.push(() => redis.stop());
    const engine = `redis://127.0.0.1:${redis.port}`;
    const [former, next] = ["a former key of 16+", "the next key of 16+"];
    const before = await open({ engine, leaseKey: former });
    const first = await acquired(before.url, ci, { key: "job:1", ttlMs: 60_000 });
    const prepared = await open({ engine, leaseKey: former, oldLeaseKey: next });
    const changed = await open({ engine, leaseKey: next, oldLeaseKey: former });
    const second = await acquired(changed.url, ci, { key: "job:2", ttlMs: 60_000 });
    const renew = async (url: string, { leaseId }: WireLease): Promise<number> =>
      (await sendRequest(url, "POST", `/v1/leases/${leaseId}/renew`, {}, as(ci))).status;
    for (const { url } of [prepared, changed]) {
      expect([await renew(url, first), await renew(url, second)]).toEqual([200, 200]);
    }
    expect(await renew(before.url, second)).toBe(404);
    await expect(createService({ oldLeaseKey: next })).rejects.toThrow(/HOLDFAST_LEASE_KEY_OLD/);
  });
});
