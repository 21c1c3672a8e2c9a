import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { freePort, hasEnded, waitUntil } from "@holdfast/test-kit";
import { transform } from "esbuild";

import { root } from "./samples.ts";

/** A program of the documentation, in a process of its own. */
export interface Program {
  readonly child: ChildProcess;
  /** The port for a program that listens. */
  readonly port: number;
  readonly lines: readonly string[];
  /** The output until now, for the message of a failed test. */
  output(): string;
  /** Resolves when the program has printed such a line after the last one that was found. Rejects if the program ends before. */
  line(pattern: RegExp): Promise<void>;
  /** Sends SIGTERM, and resolves when the program handles it or has ended. */
  terminate(): Promise<void>;
  /** Waits for the end, far shorter than Kubernetes. @returns the exit code, or the signal that ended the program */
  end(): Promise<number | NodeJS.Signals>;
}

/** Runs before each program: `work`, and a line after the program has received the SIGTERM that it handles. */
const common = `
process.on("newListener", (name) => {
  if (name !== "SIGTERM" || globalThis.isListening) return;
  globalThis.isListening = true;
  process.once("SIGTERM", () => console.log("received SIGTERM"));
});
/** Work that lasts until the test ends it by SIGWINCH, which no framework handles, or the signal aborts it. */
globalThis.work = (signal, value) => new Promise((resolve, reject) => {
  signal?.addEventListener("abort", () => reject(signal.reason));
  process.once("SIGWINCH", () => resolve(value));
  console.log("working");
});`;

/**
 * Starts a program in a folder of its own.
 * @param parts `before` runs before the program, and declares what the page leaves to its reader; `after` is appended to the program
 */
export async function startProgram(
  text: string,
  parts: { readonly before?: string | undefined; readonly after?: string | undefined },
  env: NodeJS.ProcessEnv,
): Promise<Program & { close(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-sample-"));
  const port = await freePort();
  const { code } = await transform(`${text}\n${parts.after ?? ""}`, {
    loader: "ts",
    target: "node20",
    tsconfigRaw: { compilerOptions: { experimentalDecorators: true } },
  });
  await symlink(join(root, "node_modules"), join(folder, "node_modules"));
  await writeFile(join(folder, "before.mjs"), `${common}\n${parts.before ?? ""}`);
  await writeFile(join(folder, "program.mjs"), `import "./before.mjs";\n${code}`);
  const child = spawn(process.execPath, [join(folder, "program.mjs")], {
    env: { ...process.env, NODE_OPTIONS: "", ...env, PORT: String(port) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  return {
    ...observed(child),
    port,
    async close() {
      child.kill("SIGKILL");
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function observed(child: ChildProcess): Omit<Program, "port"> {
  const lines: string[] = [];
  let errors = "";
  let next = 0;
  const reader = createInterface(child.stdout!);
  reader.on("line", (text) => lines.push(text));
  child.stderr!.setEncoding("utf8").on("data", (text: string) => (errors += text));
  const closed = Promise.all([once(child, "exit"), once(reader, "close")]);
  const output = (): string => `${lines.join("\n")}\n${errors}`;
  return {
    child,
    lines,
    output,
    async end() {
      await waitUntil(() => hasEnded(child), `the program ends: ${output()}`);
      await closed;
      return (child.exitCode ?? child.signalCode) as number | NodeJS.Signals;
    },
    async line(pattern) {
      const find = (): number => lines.findIndex((text, index) => index >= next && pattern.test(text));
      const isThere = (): boolean => find() >= 0 || hasEnded(child);
      await waitUntil(isThere, `a line ${String(pattern)} of:\n${output()}`);
      if (find() < 0) {
        throw new Error(`The program ended without a line ${String(pattern)}:\n${output()}`);
      }
      next = find() + 1;
    },
    async terminate() {
      child.kill("SIGTERM");
      const isReceived = (): boolean => lines.includes("received SIGTERM") || hasEnded(child);
      await waitUntil(isReceived, "the program has received SIGTERM");
    },
  };
}
