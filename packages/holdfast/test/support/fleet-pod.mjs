// A pod of a fleet, for compat/redis-semaphore/fleet.test.ts. Its tasks take turns under a mutex, with either library.
//
// `node fleet-pod.mjs <name> <library: "old" | "new"> <key> <ports of the lock servers> <port of the register> <options as JSON>`
//
// Each turn registers its task under `register:<key>`, and increments `turns:<key>` by a read and a write. An overlap of two turns
// appears as a foreign register, and mostly as a lost increment.

import { setPriority } from "node:os";
import { setTimeout as pause } from "node:timers/promises";

import { Redis } from "ioredis";
import * as old from "redis-semaphore";

import * as replacement from "../../dist/compat/redis-semaphore/index.js";

setPriority(10);

const [name, library, key, ports, registerPort, given] = process.argv.slice(2);
const { tasks, holdMs, pauseMs, lockTimeout } = JSON.parse(given);
const { Mutex, RedlockMutex } = library === "old" ? old : replacement;
const connect = (port) => new Redis({ host: "127.0.0.1", port: Number(port) });
const clients = ports.split(",").map(connect);
const register = connect(registerPort);
const state = { isOver: false, turns: 0 };

/** One object for each turn, as in the documentation of redis-semaphore. */
function createMutex(onLockLost) {
  const options = { lockTimeout, acquireTimeout: Infinity, onLockLost };
  return clients.length === 1 ? new Mutex(clients[0], key, options) : new RedlockMutex(clients, key, options);
}

async function takeTurn(who) {
  const mutex = createMutex(() => process.send({ lost: who }));
  await mutex.acquire();
  const [other, before] = await Promise.all([register.get(`register:${key}`), register.get(`turns:${key}`)]);
  if (other !== null) {
    process.send({ overlap: [who, other] });
  }
  await register.set(`register:${key}`, who);
  await pause(holdMs);
  const [present] = await Promise.all([
    register.get(`register:${key}`),
    register.set(`turns:${key}`, Number(before) + 1),
  ]);
  if (present !== who) {
    process.send({ overlap: [who, String(present)] });
  }
  await register.del(`register:${key}`);
  await mutex.release();
  state.turns += 1;
}

async function runTask(_, task) {
  while (!state.isOver) {
    await takeTurn(`${name}.${task}`);
    process.send({ turns: state.turns });
    await pause(Math.random() * 2 * pauseMs);
  }
}

process.on("message", () => {
  state.isOver = true;
});
process.on("disconnect", () => process.exit());
await Promise.all(Array.from({ length: tasks }, runTask));
for (const client of [...clients, register]) {
  client.disconnect();
}
process.send({ done: state.turns });
process.disconnect();
