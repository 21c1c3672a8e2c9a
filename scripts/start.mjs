// `npm start` starts the lock service on its embedded engine, or on the engine of HOLDFAST_URL. With `npm start -- --traffic`,
// the workers of the orders example also use the service, so that its pages show activity.

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
    process.stdout.write(`Traffic runs: 8 workers lock the articles of orders. Another terminal shows it live:

  npx holdfast top --url ${url}

`);
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
