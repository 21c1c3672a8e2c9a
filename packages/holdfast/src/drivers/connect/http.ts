import type { Driver } from "../../driver.ts";
import { checkOptionNames, checkObject } from "../../option-checks.ts";
import { readServiceUrl } from "../http/url.ts";
import type { HttpOptions } from "../http/index.ts";
import { tlsOf, type ConnectionOptions, type TlsFiles } from "./options.ts";
import { loadTls } from "./tls.ts";

/** Whether a URL is the address of a lock service. */
export function isHttpUrl(url: string | URL): boolean {
  return /^https?:/i.test(String(url));
}

/**
 * Creates a driver for a lock service. The token is the password of the URL, or the option `password`.
 * @throws {TypeError} synchronously, before the driver is loaded
 */
export function connectHttp(url: string | URL, options: object): Promise<Driver> {
  checkObject("options", options);
  const { address, token } = readServiceUrl(url);
  const isEncrypted = address.protocol === "https:";
  checkOptionNames(options, [...names, ...(isEncrypted ? tlsNames : [])]);
  const { password, commandTimeoutMs, clock, random, ...files } = options as HttpConnectOptions;
  if (token !== undefined && password !== undefined) {
    throw new TypeError("Expected `password` to be given in the URL or in the options, got it in both");
  }
  const httpOptions = { clock, random, token: token ?? password, requestTimeoutMs: commandTimeoutMs };
  return load(address, httpOptions, isEncrypted ? tlsOf(files) : undefined);
}

const names = ["password", "commandTimeoutMs", "clock", "random"];
const tlsNames = ["tlsCaFile", "tlsCertFile", "tlsKeyFile", "tlsServername", "tlsVerify"];

type HttpConnectOptions = Pick<ConnectionOptions, "password" | (`tls${string}` & keyof ConnectionOptions)> &
  Pick<HttpOptions, "clock" | "random"> & { commandTimeoutMs?: number | undefined };

async function load(address: URL, options: HttpOptions, files: TlsFiles | undefined): Promise<Driver> {
  const [{ http }, tls] = await Promise.all([import("../http/index.ts"), loadTls(files)]);
  return http(address, { ...options, tls });
}
