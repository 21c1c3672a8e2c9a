import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { newToken } from "@holdfast/server";
import { endProcess, startRedis } from "@holdfast/test-kit";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";

import { onRedis } from "../../../packages/holdfast/test/support/servers.ts";
import { blocksOf, commandLine, linesOf, program, shell } from "./support/shell.ts";

const issuer = "https://gitlab.example";

interface GithubJob {
  readonly env: Readonly<Record<string, string>>;
  readonly steps: readonly { readonly run?: string }[];
}
interface GitlabJob {
  readonly id_tokens: object;
  readonly script: readonly string[];
  readonly after_script?: readonly string[];
}

/** A program that finds out whether another one runs at the same time. */
const alone = `mkdir busy || { echo overlap >> log; exit 1; }
sleep 0.1
rmdir busy
echo "$(basename "$0") $*" >> log`;

onRedis("the shell lines of the documentation", () => {
  test("run one at a time at a service, with its tokens and those of an issuer", async () => {
    const folder = await mkdtemp(join(tmpdir(), "holdfast-ci-"));
    const redis = await startRedis();
    onTestFinished(async () => {
      await redis.stop();
      await rm(folder, { recursive: true, force: true });
    });
    await commandLine(folder);
    await program(folder, "npm", `test "$*" = "install --global @holdfast/cli"`);
    await program(folder, "terraform", alone);
    await program(folder, "deploy.sh", alone);

    const { token, sha256 } = newToken();
    const grants = ["deploy:", "tf:"].map((prefix) => ({ scope: "lock:acquire", prefix }));
    const { jwksUrl, idToken } = await issuerOfTokens();
    const rules = [{ subject: "project_path:acme/", grants }];
    const jwt = [{ issuer, audience: "holdfast", jwksUrl, rules }];
    await writeFile(
      join(folder, "auth.json"),
      JSON.stringify({ tokens: [{ name: "github", sha256, grants }], jwt }),
    );
    const env = {
      HOLDFAST_URL: `redis://127.0.0.1:${redis.port}`,
      GITHUB_RUN_ID: "7",
      CI_JOB_URL: "https://ci/7",
    };
    const service = shell(folder, "exec holdfast serve --port 0 --auth-file auth.json", env);
    onTestFinished(() => endProcess(service.child));
    const url = await service.line;

    const [github, gitlab, e2e] = (await blocksOf("docs/ci.md", "yaml")).map(
      (text) => parse(text) as unknown,
    );
    const { env: secrets, steps } = (github as { jobs: { deploy: GithubJob } }).jobs.deploy;
    expect(Object.keys(secrets)).toEqual(["HOLDFAST_URL", "HOLDFAST_TOKEN"]);
    const { deploy } = gitlab as { deploy: GitlabJob };
    const { e2e: several } = e2e as { e2e: GitlabJob };
    expect(deploy.id_tokens).toEqual({ HOLDFAST_TOKEN: { aud: "holdfast" } });
    const own = { ...env, HOLDFAST_URL: url, HOLDFAST_TOKEN: token };
    const issued = { ...own, HOLDFAST_TOKEN: idToken };
    const terraform = await linesOf("docs/recipes/terraform.md");
    const jobs = [
      shell(folder, steps.flatMap(({ run }) => run ?? []).join("\n"), own),
      shell(folder, deploy.script.join("\n"), issued),
    ];
    expect(await Promise.all(jobs.map(({ code }) => code))).toEqual([0, 0]);
    const later = [...terraform, [...several.script, ...(several.after_script ?? [])].join("\n")];
    for (const lines of later) {
      expect(await shell(folder, lines, issued).code).toBe(0);
    }
    const log = await readFile(join(folder, "log"), "utf8");
    expect(log.trim().split(/ *\n/)).toEqual([
      "deploy.sh",
      "deploy.sh",
      "terraform apply -lock-timeout=5m -auto-approve",
      "deploy.sh",
      "deploy.sh",
    ]);
    expect(await redis.client().keys("lock:*")).toEqual([]);
  }, 60_000);
});

/** The keys and one token of an issuer, as GitLab has them. */
async function issuerOfTokens(): Promise<{ jwksUrl: string; idToken: string }> {
  const { publicKey, privateKey } = await generateKeyPair("RS256");
  const keys = [{ ...(await exportJWK(publicKey)), kid: "1", alg: "RS256", use: "sig" }];
  const server = createServer((_request, response) => response.end(JSON.stringify({ keys }))).listen(
    0,
    "127.0.0.1",
  );
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const idToken = await new SignJWT({ sub: "project_path:acme/app:ref_type:branch:ref:main" })
    .setProtectedHeader({ alg: "RS256", kid: "1" })
    .setIssuer(issuer)
    .setAudience("holdfast")
    .setIssuedAt()
    .setExpirationTime("1h")
    .sign(privateKey);
  return { jwksUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`, idToken };
}
