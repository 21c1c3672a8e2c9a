import type { Driver } from "../../driver.ts";
import { zookeeper, type ZooKeeperOptions } from "../zookeeper/index.ts";
import { readEngineUrl, type OptionType } from "./engine-url.ts";

const known: Readonly<Record<"sessionTimeoutMs" | "maxClockDifferenceMs" | "commandTimeoutMs", OptionType>> =
  {
    sessionTimeoutMs: "number",
    maxClockDifferenceMs: "number",
    commandTimeoutMs: "number",
  };

/**
 * Opens a driver on `zookeeper://user:password@host:port/root`. Several servers stand as `host:port,host:port`, and the path is the
 * option `root`.
 */
export async function connectZooKeeper(text: string, given: object): Promise<Driver> {
  const [, user = "", hosts = "", rest = ""] = /^zookeeper:\/\/([^/?#]*@)?([^/?#@]*)(.*)$/is.exec(text) ?? [];
  const servers = hosts.split(",");
  const { url, options } = readEngineUrl(`zookeeper://${user}${servers[0]}${rest}`, given, known);
  if (url.search !== "" || url.hash !== "") {
    throw new TypeError("Expected the URL of ZooKeeper to have no fragment, and only known parameters");
  }
  const root = decodeURIComponent(url.pathname.replace(/\/$/, ""));
  return zookeeper(servers, {
    ...(options as ZooKeeperOptions),
    ...(root === "" ? {} : { root }),
    ...(url.username === "" ? {} : { user: decodeURIComponent(url.username) }),
    ...(url.password === "" ? {} : { password: decodeURIComponent(url.password) }),
  });
}
