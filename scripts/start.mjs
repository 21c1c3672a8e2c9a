// `npm start`: the lock service, on the embedded engine or on that of HOLDFAST_URL. `npm start -- --traffic` lets the example's
// clerks work with it, so that there is something to see.

import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const args = process.argv.slice(2);
const withTraffic = args.includes("--traffic");

const service = spawn(
  process.execPath,
  [join(root, "packages/server/dist/main.js"), ...args.filter((one) => one !== "--traffic")],
  { stdio: ["inherit", "pipe", "inherit"] },
);
let traffic;
let received = "";

service.stdout.setEncoding("utf8").on("data", (text) => {
  process.stdout.write(text);
  received += text;
  const [url] = /http:\/\/[^\s<]+(?=\n)/.exec(received) ?? [];
  if (url !== undefined && withTraffic && !traffic) {
    traffic = spawn(process.execPath, [join(root, "examples/orders/dist/traffic.js"), url], {
      stdio: "inherit",
    });
  }
});

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => {
    traffic?.kill("SIGTERM");
    service.kill(signal);
  });
}

service.once("exit", (code) => {
  traffic?.kill("SIGTERM");
  process.exitCode = code ?? 1;
});
