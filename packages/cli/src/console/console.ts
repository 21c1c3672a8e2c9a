import { spawn } from "node:child_process";

import { urlOf, type Target } from "../engine.ts";
import { Exit, exitCodes } from "../exit.ts";
import { listen, open, untilSignal } from "../serve/serve.ts";

export interface ConsoleOptions {
  readonly target: Target;
  readonly port: number;
  readonly opensBrowser: boolean;
  readonly isReadOnly: boolean;
}

/** Serves the console until a signal. For the URL of a service, only opens its console. */
export async function openConsole(options: ConsoleOptions): Promise<number> {
  const url = urlOf(options.target);
  if (/^https?:/i.test(url)) {
    if (options.isReadOnly) {
      throw new Exit(
        exitCodes.usage,
        "--read-only is an option of the service itself; its tokens have scopes too",
      );
    }
    show(consoleOf(url), options.opensBrowser);
    return exitCodes.done;
  }
  const service = await open(options.target, { drainMs: 0, readOnly: options.isReadOnly });
  if (service.guarantee === "process") {
    await service.close();
    throw new Exit(exitCodes.config, "memory: exists only inside this process; name a server or a service");
  }
  return untilSignal(service, async () => {
    show(
      `${await listen(service, { host: "127.0.0.1", port: options.port })}/console/`,
      options.opensBrowser,
    );
  });
}

/** The address of a service's console, without the token that the URL may contain. */
function consoleOf(url: string): string {
  const address = new URL(url);
  address.username = "";
  address.password = "";
  address.search = "";
  address.pathname = `${address.pathname.replace(/\/$/, "")}/console/`;
  return address.href;
}

function show(address: string, opensBrowser: boolean): void {
  process.stdout.write(`${address}\n`);
  if (opensBrowser) {
    openBrowser(address);
  }
}

const openers: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ["open"],
  win32: ["cmd", "/c", "start", ""],
};

/** Opens the address by the system's own command. A machine without a browser is no error, because the address is printed. */
function openBrowser(address: string): void {
  const [command = "", ...args] = openers[process.platform] ?? ["xdg-open"];
  spawn(command, [...args, address], { detached: true, stdio: "ignore" })
    .on("error", () => undefined)
    .unref();
}
