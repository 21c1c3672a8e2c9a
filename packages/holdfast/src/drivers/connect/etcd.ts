import type { Driver } from "../../driver.ts";
import { etcd, type EtcdOptions } from "../etcd/index.ts";
import { readEngineUrl, type OptionType } from "./engine-url.ts";

const known: Readonly<Record<"prefix" | "commandTimeoutMs", OptionType>> = {
  prefix: "text",
  commandTimeoutMs: "number",
};

/** Opens a driver on `etcd://user:password@host:port`, or with `etcds` over TLS. Several members stand as `host:port,host:port`. */
export async function connectEtcd(text: string, given: object): Promise<Driver> {
  const [, scheme = "", user = "", hosts = "", rest = ""] =
    /^(etcds?):\/\/([^/?#]*@)?([^/?#@]*)\/?(.*)$/is.exec(text) ?? [];
  const [first, ...others] = hosts.split(",").map((host) => (/:\d+$/.test(host) ? host : `${host}:2379`));
  const { url, options } = readEngineUrl(`${scheme}://${user}${first}/${rest}`, given, known);
  if (url.pathname !== "/" || url.search !== "" || url.hash !== "") {
    throw new TypeError("Expected the URL of etcd to have no path, no fragment, and only known parameters");
  }
  const protocol = scheme.toLowerCase() === "etcds" ? "https" : "http";
  const endpoints = [first, ...others].map((host) => `${protocol}://${host}`);
  const credentials = url.username === "" ? {} : { user: decodeURIComponent(url.username) };
  const password = url.password === "" ? {} : { password: decodeURIComponent(url.password) };
  return etcd(endpoints, { ...(options as EtcdOptions), ...credentials, ...password });
}
