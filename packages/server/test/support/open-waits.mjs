// Ten thousand open waits in one instance of the service, and what they cost. Wants a build, and Linux.
//
//   node packages/server/test/support/open-waits.mjs [waits] [engine URL]
//
// Half of them wait for an answer, half follow a stream. After they are open they are looked at for a while, then half of them go
// away and come back, four times. Printed: resident memory and CPU of the service, and how long another client waits for a lock.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const waits = Number(process.argv[2] ?? 10_000);
const engine = process.argv[3] ?? "memory:";
const keys = 100;
const main = fileURLToPath(new URL("../../dist/main.js", import.meta.url));

const child = spawn(process.execPath, [main], {
  env: { ...process.env, HOLDFAST_URL: engine, HOLDFAST_PORT: "0" },
  stdio: ["ignore", "pipe", "inherit"],
});
const said = String((await once(child.stdout, "data"))[0]);
const url = new URL(/http:\/\/\S+/.exec(said)[0]);
const started = performance.now();

const held = await Promise.all(
  Array.from({ length: keys }, (_, key) => post({ key: `wait:${key}`, ttlMs: 3_600_000 })),
);
console.log(`${waits} waits for ${keys} keys, engine ${engine}, Node ${process.version}`);
await tell("before");

const open = [];
for (let i = 0; i < waits; i += 1) {
  open.push(await stand(i));
  if (open.length % 2_500 === 0) await tell(`${open.length} open`);
}
await queued(waits);
await tell("all queued");
for (let look = 1; look <= 5; look += 1) {
  await pause(3_000);
  await tell(`still, ${look * 3} s`);
}
for (let round = 1; round <= 4; round += 1) {
  for (let i = 0; i < waits; i += 2) open[i].destroy();
  await queued(waits / 2);
  for (let i = 0; i < waits; i += 2) open[i] = await stand(i);
  await queued(waits);
  await tell(`half left and came back, ${round}`);
}
for (const { leaseId } of held) await fetch(new URL(`/v1/leases/${leaseId}`, url), { method: "DELETE" });
for (const socket of open) socket.destroy();
await queued(0);
await tell("all gone");
child.kill("SIGTERM");
await once(child, "exit");

async function stand(i) {
  const socket = connect(Number(url.port), url.hostname);
  socket.on("error", () => undefined);
  await once(socket, "connect");
  const body = JSON.stringify({ key: `wait:${i % keys}`, waitMs: 3_600_000, owner: `waiter ${i}` });
  const accept = i % 2 === 0 ? "text/event-stream" : "application/json";
  socket.write(
    `POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nAccept: ${accept}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  socket.resume();
  return socket;
}

async function post(body) {
  const response = await fetch(new URL("/v1/leases", url), {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json" },
  });
  return response.json();
}

async function queued(count) {
  for (;;) {
    const text = await (await fetch(new URL("/metrics", url))).text();
    if (Number(/^holdfast_server_open_waits\S* (\d+)/m.exec(text)?.[1]) === count) return;
    await pause(200);
  }
}

async function tell(what) {
  const begun = performance.now();
  const { leaseId } = await post({ key: "free" });
  const tookMs = performance.now() - begun;
  await fetch(new URL(`/v1/leases/${leaseId}`, url), { method: "DELETE" });
  const rssMb = Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))[1]) / 1024;
  const stat = readFileSync(`/proc/${child.pid}/stat`, "utf8").split(") ")[1].split(" ");
  const cpuS = (Number(stat[11]) + Number(stat[12])) / 100;
  const at = ((performance.now() - started) / 1000).toFixed(0);
  console.log(
    `${at.padStart(4)} s  ${what.padEnd(28)} RSS ${rssMb.toFixed(0).padStart(4)} MB  CPU ${cpuS.toFixed(1).padStart(6)} s  a try takes ${tookMs.toFixed(1)} ms`,
  );
}
