import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { generateOrders } from "../src/generate.ts";
import { parseOptions, UsageError } from "../src/options.ts";
import { initialStock, readOrders, unitsByArticle } from "../src/orders.ts";
import { run } from "../src/run.ts";
import { installedVersion } from "../src/server.ts";

const committedOrders = fileURLToPath(new URL("../orders.ndjson", import.meta.url));
const program = fileURLToPath(new URL("../dist/main.js", import.meta.url));

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-orders-test-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

describe("the orders", () => {
  test("the generator reproduces the committed file byte for byte", async () => {
    expect(generateOrders()).toBe(await readFile(committedOrders, "utf8"));
  });

  test("2 000 orders for 20 articles exceed the stock of each article", async () => {
    const orders = await readOrders(committedOrders);
    const stock = initialStock(orders);
    expect([orders.length, stock.size]).toEqual([2_000, 20]);
    for (const [article, units] of unitsByArticle(orders)) expect(stock.get(article)).toBeLessThan(units);
  });

  test("a line that is no order is rejected with its number and its content", async () => {
    const file = await write(
      "bad.ndjson",
      '{"order":1,"article":"saw","units":1}\n{"order":2,"article":"saw"}\n',
    );
    await expect(readOrders(file)).rejects.toThrow(
      /^Expected line 2 of .*bad\.ndjson to be an order like .*, got \{"order":2,"article":"saw"\}$/,
    );
  });

  test("a file without orders and a missing file are rejected with the name of the option", async () => {
    const empty = await write("empty.ndjson", "\n");
    await expect(readOrders(empty)).rejects.toThrow(
      /^Expected `--orders` to hold at least one order, got none in/,
    );
    await expect(readOrders(join(folder, "none"))).rejects.toThrow(
      /^Expected `--orders` to be a readable file, got/,
    );
  });
});

describe("the options", () => {
  test("the default is four workers on the committed orders", () => {
    expect(parseOptions([])).toEqual({
      workers: 4,
      ordersFile: committedOrders,
      engine: "private redis if there is one",
    });
  });

  test.each([
    [["--processes", "0"], 'Expected `--processes` to be an integer from 1 to 64, got "0"'],
    [["--processes", "4.5"], 'Expected `--processes` to be an integer from 1 to 64, got "4.5"'],
    [
      ["--redis", "http://u:secret@x"],
      'Expected `--redis` to be a URL like redis://127.0.0.1:6379, got "http://***@x"',
    ],
    [["--redis", "redis://x", "--memory"], "Expected one of `--redis` and `--memory`, got both"],
    [["--procs", "4"], "Unknown option '--procs'"],
  ])("%j is rejected with the expected and the actual value", (args, message) => {
    expect(() => parseOptions(args)).toThrow(new UsageError(message));
  });
});

describe("a run", () => {
  test("on the memory driver prints its engine and progress, and oversells nothing with locks", async () => {
    let text = "";
    const out = { write: (chunk: string) => (text += chunk) };
    const options = parseOptions(["--memory", "--orders", await smallOrdersFile()]);
    if (options === "help") throw new Error("unreachable");
    expect(await run(options, out, new AbortController().signal)).toBe("sound");
    expect(text).toMatch(
      /^Engine: the memory driver inside this one process, with 4 workers in it, because of --memory\./,
    );
    expect(text).toContain("with locks: 100 of 200 orders, 50 %\n");
    expect(text).toMatch(/^orders +200 +200$/m);
    expectNothingOversold(text);
  });

  test("without a redis-server on the PATH uses the memory driver, and prints the reason", async () => {
    const { status, stdout } = spawnSync(process.execPath, [program, "--orders", await smallOrdersFile()], {
      encoding: "utf8",
      env: { ...process.env, PATH: folder },
    });
    expect(stdout).toMatch(/^Engine: the memory driver .*, because no redis-server was found on the PATH\./);
    expectNothingOversold(stdout);
    expect(status).toBe(0);
  });

  test("with a bad option ends with 2 and one message on standard error", () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [program, "--processes", "x"], {
      encoding: "utf8",
    });
    expect([status, stdout]).toEqual([2, ""]);
    expect(stderr).toBe(
      'Expected `--processes` to be an integer from 1 to 64, got "x"\n(--help lists the options.)\n',
    );
  });
});

const hasRedis = (await installedVersion()) !== null;
if (!hasRedis)
  console.warn("orders: redis-server is missing; the runs on it are skipped (an error when CI=true)");

describe.skipIf(!hasRedis && process.env["CI"] !== "true")("a run on a private redis-server", () => {
  test("has four processes, oversells nothing with locks, and leaves no files", async () => {
    const example = startExample(["--orders", await smallOrdersFile()]);
    const text = await output(example);
    expect(text).toMatch(
      /^Engine: a private redis-server \S+ on 127\.0\.0\.1:\d+, with 4 processes, because/,
    );
    expectNothingOversold(text);
    expect(text).not.toMatch(/Error|Warning/);
    expect(example.exitCode).toBe(0);
    await expectNothingLeft(text);
  });

  test("a signal in the middle stops the server and the workers and removes the files", async () => {
    const example = startExample([]);
    const text = await output(example, () => example.kill("SIGTERM"));
    expect(example.exitCode).toBe(143);
    expect(text).toContain("Stopped by SIGTERM");
    await expectNothingLeft(text);
  });
});

async function write(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

async function smallOrdersFile(): Promise<string> {
  return write("few.ndjson", generateOrders().split("\n").slice(0, 200).join("\n"));
}

function expectNothingOversold(text: string): void {
  expect(text).toMatch(/^units oversold +[\d ]+ {3,}0$/m);
  expect(text).toMatch(/^units unaccounted for +[\d ]+ {3,}0$/m);
}

/** Starts the example with its own folder for temporary files, so that the test can find remaining files. */
function startExample(args: string[]): ChildProcess {
  const env = { ...process.env, TMPDIR: folder };
  return spawn(process.execPath, [program, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
}

/** The output of the example until its end. `atFirstLine` is called at the first output, which names the engine. */
async function output(example: ChildProcess, atFirstLine?: () => void): Promise<string> {
  let text = "";
  for (const stream of [example.stdout, example.stderr]) {
    stream?.setEncoding("utf8").on("data", (chunk: string) => {
      if (text === "") atFirstLine?.();
      text += chunk;
    });
  }
  await once(example, "close");
  return text;
}

async function expectNothingLeft(text: string): Promise<void> {
  expect((await readdir(folder)).filter((name) => name.startsWith("holdfast-orders-"))).toEqual([]);
  const port = Number(/127\.0\.0\.1:(\d+)/.exec(text)?.[1]);
  await expect(once(connect(port, "127.0.0.1"), "connect")).rejects.toThrow("ECONNREFUSED");
}
