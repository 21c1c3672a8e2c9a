import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { describe, expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const settings = new Set(read("packages/server/src/main.ts").match(/HOLDFAST_\w+/g));

describe("the secrets of the Compose file", () => {
  test("open the service to a client, and its metrics to Prometheus only", async () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-secrets-"));
    onTestFinished(() => {
      rmSync(folder, { recursive: true });
    });
    createSecrets(folder);
    const client = secret(folder, "client.token");
    const url = await startService(join(folder, "secrets", "auth.json"));

    expect(await status(`${url}/v1/locks`, client)).toBe(200);
    expect(await status(`${url}/v1/locks`, "hf_wrong")).toBe(401);
    expect(await status(`${url}/metrics`, secret(folder, "metrics.token"))).toBe(200);
    expect(await status(`${url}/metrics`, client)).toBe(403);
    expect(await status(`${url}/healthz`)).toBe(200);
  });

  test("are new in each folder, private, and never overwritten", () => {
    const folders = [1, 2].map(() => mkdtempSync(join(tmpdir(), "holdfast-secrets-")));
    onTestFinished(() => {
      for (const folder of folders) rmSync(folder, { recursive: true });
    });
    for (const folder of folders) createSecrets(folder);
    const [first, second] = folders.map((folder) => secret(folder, "client.token"));
    expect(first).toMatch(/^hf_[0-9a-f]{64}$/);
    expect(first).not.toBe(second);
    expect(statSync(join(folders[0]!, "secrets")).mode & 0o777).toBe(0o700);
    expect(() => createSecrets(folders[0]!)).toThrow("secrets exists");
    expect(secret(folders[0]!, "client.token")).toBe(first);
  });
});

describe("the settings of the service", () => {
  test.each(["deploy/Dockerfile", "deploy/systemd/holdfast.env", "deploy/systemd/holdfast.service"])(
    "in %s exist",
    (path) => {
      for (const name of read(path).match(/HOLDFAST_\w+/g) ?? []) expect([...settings]).toContain(name);
    },
  );

  test("in the Helm chart exist, and the Pod ends after the drain", () => {
    const text = read("deploy/helm/holdfast/values.yaml");
    const values = parse(text) as {
      settings: Record<string, string>;
      preStopSeconds: number;
      terminationGracePeriodSeconds: number;
    };
    for (const name of text.match(/HOLDFAST_\w+/g) ?? []) expect([...settings]).toContain(name);
    const drainSeconds = Number(values.settings["HOLDFAST_DRAIN_MS"]) / 1_000;
    expect(values.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(
      values.preStopSeconds + drainSeconds + 2,
    );
  });

  test("are not set by Kubernetes, for a service of the same name", () => {
    expect(read("deploy/helm/holdfast/templates/deployment.yaml")).toMatch(/^ {6}enableServiceLinks: false/m);
  });
});

test("the image and the library's tests use the same versions of the client libraries", () => {
  const image = JSON.parse(read("deploy/package.json")) as { dependencies: Record<string, string> };
  const { devDependencies } = JSON.parse(read("packages/holdfast/package.json")) as {
    devDependencies: Record<string, string>;
  };
  for (const name of ["ioredis", "mysql2", "pg"])
    expect(image.dependencies[name]).toBe(devDependencies[name]);
});

test("the command of the CronJob runs once in its period", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-secrets-"));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  createSecrets(folder);
  const url = await startService(join(folder, "secrets", "auth.json"));
  const job = parse(read("deploy/kubernetes/cronjob.yaml")) as {
    spec: {
      jobTemplate: { spec: { template: { spec: { containers: [{ command: string[]; args: string[] }] } } } };
    };
  };
  const { command, args } = job.spec.jobTemplate.spec.template.spec.containers[0];
  expect(command.slice(0, 2)).toEqual(["holdfast", "once"]);
  const options = [...command.slice(1), ...args.slice(0, args.indexOf("--"))];
  const start = (): string =>
    execFileSync(
      process.execPath,
      [join(root, "packages/cli/dist/bundle/main.cjs"), ...options, "--quiet", "--", "echo", "ran"],
      {
        encoding: "utf8",
        env: { ...process.env, HOLDFAST_URL: url, HOLDFAST_TOKEN: secret(folder, "client.token") },
      },
    );
  expect([start(), start()]).toEqual(["ran\n", ""]);
});

function createSecrets(folder: string): void {
  execFileSync("sh", [join(root, "deploy/compose/secrets.sh"), folder], {
    stdio: ["ignore", "ignore", "pipe"],
  });
}

function secret(folder: string, name: string): string {
  return readFileSync(join(folder, "secrets", name), "utf8");
}

async function startService(authFile: string): Promise<string> {
  const service = spawn(process.execPath, [join(root, "packages/server/dist/main.js")], {
    env: { ...process.env, HOLDFAST_AUTH_FILE: authFile, HOLDFAST_PORT: "0", HOLDFAST_URL: "memory:" },
    stdio: ["ignore", "pipe", "ignore"],
  });
  onTestFinished(async () => {
    service.kill("SIGTERM");
    if (service.exitCode === null) await once(service, "exit");
  });
  for await (const line of createInterface(service.stdout)) {
    const [url] = /http:\/\/\S+/.exec(line) ?? [];
    if (url !== undefined) return url;
  }
  throw new Error("The service ended before it listened");
}

async function status(url: string, token?: string): Promise<number> {
  const response = await fetch(
    url,
    token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } },
  );
  await response.body?.cancel();
  return response.status;
}
