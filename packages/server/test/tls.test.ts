import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type AddressInfo } from "node:net";
import { createServer } from "node:tls";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { expect, test } from "vitest";
import { makeCertificates } from "@holdfast/lab";

import { createService } from "../src/index.ts";

const run = promisify(execFile);
const cwd = fileURLToPath(new URL("..", import.meta.url));

/** Of the built package, as the certificates that Node trusts are read at its start. */
const program = `
  import { createLocks } from "holdfast";
  import { connect } from "holdfast/connect";
  const locks = createLocks(await connect(process.argv[1], { commandTimeoutMs: 5_000 }));
  const told = await locks.withLock("key", () => "worked").catch((error) => [error.code, error.retryable, error.message].join(" "));
  await locks.close();
  console.log(told);
`;

test("a service behind TLS is reached, and the process ends by itself; one that nobody vouches for is refused", async () => {
  await using certificates = await makeCertificates();
  const { caFile, certFile, keyFile } = certificates;
  const service = await createService();
  const { hostname, port } = new URL(await service.listen({ port: 0 }));
  const proxy = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, (socket) => {
    const plain = connect(Number(port), hostname);
    socket.on("error", () => plain.destroy()).pipe(plain).on("error", () => socket.destroy()).pipe(socket); // prettier-ignore
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const url = `https://localhost:${(proxy.address() as AddressInfo).port}`;
  const call = async (env: Record<string, string>): Promise<string> =>
    (
      await run(process.execPath, ["--input-type=module", "-e", program, url], {
        cwd,
        env: { ...process.env, ...env },
      })
    ).stdout.trim();
  expect(await call({ NODE_EXTRA_CA_CERTS: caFile })).toBe("worked");
  expect(await call({})).toMatch(/^engine-unavailable false .*certificate/);
  proxy.close();
  await service.close();
});
