import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect as connectTo, type AddressInfo } from "node:net";
import { createServer, type Server } from "node:tls";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { createLocks } from "holdfast";
import { connect } from "holdfast/connect";
import { http, type TlsOptions } from "holdfast/http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeCertificates, type Certificates } from "@holdfast/test-kit";

import { createService, type Service } from "../src/index.ts";

const run = promisify(execFile);
const cwd = fileURLToPath(new URL("..", import.meta.url));

/** Runs the built package, because Node reads its trusted certificates at the start. */
const program = `
  import { createLocks } from "holdfast";
  import { connect } from "holdfast/connect";
  const locks = createLocks(await connect(process.argv[1], { commandTimeoutMs: 5_000 }));
  const response = await locks.withLock("key", () => "worked").catch((error) => [error.code, error.retryable, error.message].join(" "));
  await locks.close();
  console.log(response);
`;

let certificates: Certificates;
let service: Service;
let proxy: Server;
let url: string;

beforeAll(async () => {
  certificates = await makeCertificates();
  const { certFile, keyFile } = certificates;
  service = await createService();
  const { hostname, port } = new URL(await service.listen({ port: 0 }));
  proxy = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, (socket) => {
    const plain = connectTo(Number(port), hostname);
    socket.on("error", () => plain.destroy()).pipe(plain).on("error", () => socket.destroy()).pipe(socket); // prettier-ignore
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  url = `https://localhost:${(proxy.address() as AddressInfo).port}`;
});

afterAll(async () => {
  proxy.close();
  await service.close();
  await certificates[Symbol.asyncDispose]();
});

test("a service with a trusted TLS certificate is reached, and the process ends; an untrusted certificate is refused", async () => {
  const call = async (env: Record<string, string>): Promise<string> =>
    (
      await run(process.execPath, ["--input-type=module", "-e", program, url], {
        cwd,
        env: { ...process.env, ...env },
      })
    ).stdout.trim();
  expect(await call({ NODE_EXTRA_CA_CERTS: certificates.caFile })).toBe("worked");
  expect(await call({})).toMatch(/^engine-unavailable false .*certificate/);
});

test("the driver accepts a private certificate authority, and connect accepts it as a file", async () => {
  const { caFile } = certificates;
  const ca = readFileSync(caFile, "utf8");
  for (const driver of [http(url, { tls: { ca } }), await connect(url, { tlsCaFile: caFile })]) {
    const locks = createLocks(driver);
    expect(await locks.withLock("own", () => "worked")).toBe("worked");
    await locks.close();
  }
});

test("an authority that did not sign the certificate, or another name in it, is refused for good", async () => {
  const { caFile, certFile } = certificates;
  const wrong: TlsOptions[] = [
    { ca: readFileSync(certFile, "utf8") },
    { ca: readFileSync(caFile, "utf8"), servername: "another.example" },
  ];
  for (const tls of wrong) {
    const locks = createLocks(http(url, { tls }));
    await expect(locks.acquire("refused", { waitMs: 60_000 })).rejects.toMatchObject({
      code: "engine-unavailable",
      outcome: "none",
      retryable: false,
    });
    await locks.close();
  }
});

test("TLS options without TLS are refused, and a missing file is named", async () => {
  expect(() => http("http://localhost", { tls: {} })).toThrow(/`tls`.*https/);
  expect(() => http(url, { tls: { pfx: "" } as object })).toThrow(/`pfx`/);
  expect(() => connect("http://localhost", { tlsCaFile: "ca.pem" })).toThrow(/`tlsCaFile`/);
  expect(() => connect(url, { tlsKeyFile: "key.pem" })).toThrow(/together/);
  await expect(connect(url, { tlsCaFile: "no-such-file" })).rejects.toThrow(/`tlsCaFile`.*ENOENT/);
});
