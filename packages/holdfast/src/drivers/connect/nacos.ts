import type { Driver } from "../../driver.ts";
import { nacos, type NacosOptions } from "../nacos/index.ts";
import { readEngineUrl, type OptionType } from "./engine-url.ts";

const known: Readonly<
  Record<"namespace" | "group" | "contextPath" | "maxClockDifferenceMs" | "commandTimeoutMs", OptionType>
> = {
  namespace: "text",
  group: "text",
  contextPath: "text",
  maxClockDifferenceMs: "number",
  commandTimeoutMs: "number",
};

/** Opens a driver on `nacos://user:password@host:port`, or with `nacoss` over TLS. Several servers stand as `host:port,host:port`. */
export async function connectNacos(text: string, given: object): Promise<Driver> {
  const [, scheme = "", user = "", hosts = "", rest = ""] =
    /^(nacoss?):\/\/([^/?#]*@)?([^/?#@]*)\/?(.*)$/is.exec(text) ?? [];
  const [first, ...others] = hosts.split(",").map((host) => (/:\d+$/.test(host) ? host : `${host}:8848`));
  const { url, options } = readEngineUrl(`${scheme}://${user}${first}/${rest}`, given, known);
  if (url.pathname !== "/" || url.search !== "" || url.hash !== "") {
    throw new TypeError("Expected the URL of Nacos to have no path, no fragment, and only known parameters");
  }
  const protocol = scheme.toLowerCase() === "nacoss" ? "https" : "http";
  const servers = [first, ...others].map((host) => `${protocol}://${host}`);
  const credentials = url.username === "" ? {} : { user: decodeURIComponent(url.username) };
  const password = url.password === "" ? {} : { password: decodeURIComponent(url.password) };
  return nacos(servers, { ...(options as NacosOptions), ...credentials, ...password });
}
