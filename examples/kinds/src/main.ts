import { createLocks, type Driver } from "holdfast";
import { memory } from "holdfast/memory";
import { redis } from "holdfast/redis";
import { Redis } from "ioredis";

import { election } from "./election.ts";
import type { Example } from "./example.ts";
import { latch } from "./latch.ts";
import { readWrite } from "./read-write.ts";
import { reentrant } from "./reentrant.ts";
import { semaphore } from "./semaphore.ts";
import { severalKeys } from "./several-keys.ts";

const examples: Readonly<Record<string, Example>> = {
  reentrant,
  readWrite,
  semaphore,
  severalKeys,
  election,
  latch,
};

const [, , url] = process.argv;
if (url === "--help" || url === "-h") {
  console.log(
    "node main.js [redis://host:port]   runs an example of each kind of lock; without a URL, in memory",
  );
} else {
  await run(url);
}

async function run(address: string | undefined): Promise<void> {
  const engine = address === undefined ? inMemory() : onRedis(address);
  const [firstProcess, secondProcess] = [createLocks(engine.firstProcess), createLocks(engine.secondProcess)];
  try {
    for (const [name, example] of Object.entries(examples)) {
      console.log(`${name}:`);
      await example(firstProcess, secondProcess, (line) => {
        console.log(`  ${line}`);
      });
    }
  } finally {
    await Promise.all([firstProcess.close(), secondProcess.close()]);
    engine.end();
  }
}

interface Engine {
  readonly firstProcess: Driver;
  readonly secondProcess: Driver;
  readonly end: () => void;
}

function inMemory(): Engine {
  const driver = memory();
  return { firstProcess: driver, secondProcess: driver, end: () => undefined };
}

function onRedis(address: string): Engine {
  const [one, other] = [new Redis(address), new Redis(address)];
  return {
    firstProcess: redis(one),
    secondProcess: redis(other),
    end: () => {
      one.disconnect();
      other.disconnect();
    },
  };
}
