import type { Driver } from "../../driver.ts";
import { checkNames, checkObject } from "../../options.ts";
import { readServiceUrl } from "../http/url.ts";
import type { HttpOptions } from "../http/index.ts";

/** Whether a URL leads to a lock service. */
export function isService(url: string | URL): boolean {
  return /^https?:/i.test(String(url));
}

/**
 * A driver for a lock service. The token may stand in the URL as its password, or be `password` of the options.
 * @throws {TypeError} at once; the driver is loaded after that
 */
export function connectToService(url: string | URL, options: object): Promise<Driver> {
  checkObject("options", options);
  checkNames(options, ["password", "commandTimeoutMs", "clock", "random"]);
  const { password, commandTimeoutMs, ...rest } = options as {
    password?: string;
    commandTimeoutMs?: number;
  } & Pick<HttpOptions, "clock" | "random">;
  const { address, token } = readServiceUrl(url);
  if (token !== undefined && password !== undefined) {
    throw new TypeError("Expected `password` to be given in the URL or in the options, got it in both");
  }
  return load(address, { ...rest, token: token ?? password, requestTimeoutMs: commandTimeoutMs });
}

async function load(address: URL, options: HttpOptions): Promise<Driver> {
  const { http } = await import("../http/index.ts");
  return http(address, options);
}
