/** The kinds of deployments. */
type Topology = "server" | "sentinel" | "cluster" | "quorum";

/** The servers in a deployment's URL. The library has validated the URL before, but does not export its parts. */
export interface DoctorTarget {
  readonly topology: Topology;
  readonly isEncrypted: boolean;
  readonly endpoints: readonly { readonly host: string; readonly port: number; readonly path?: string }[];
  /** The primary's name in Sentinel. */
  readonly primary: string;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly query: URLSearchParams;
  readonly database: number;
}

const topologies: Readonly<Record<string, Topology>> = {
  redis: "server",
  "redis+unix": "server",
  "redis+sentinel": "sentinel",
  "redis+cluster": "cluster",
  redlock: "quorum",
};

/** Parses an engine's URL. */
export function parseTarget(url: string): DoctorTarget {
  const { scheme, user, hosts, path, query } = partsOf(url);
  const plain = scheme.replace(/^(rediss|redlocks)/, (name) => name.slice(0, -1));
  const topology = Object.hasOwn(topologies, plain) ? topologies[plain] : undefined;
  if (topology === undefined) {
    throw new TypeError("Expected the URL of an engine with checks");
  }
  const host = decodeURIComponent(path);
  const parameters = new URLSearchParams(query.replaceAll("+", "%2B"));
  const isNumbered = topology !== "sentinel" && plain !== "redis+unix";
  return {
    topology,
    isEncrypted: plain !== scheme,
    endpoints: plain === "redis+unix" ? [{ host: "", port: 0, path: host }] : endpointsOf(hosts, topology),
    primary: host.slice(1),
    ...userOf(user),
    database: Number((isNumbered && host.slice(1)) || parameters.get("database") || 0),
    query: parameters,
  };
}

function partsOf(url: string): Record<"scheme" | "user" | "hosts" | "path" | "query", string> {
  const [, scheme = "", user = "", hosts = "", path = "", query = ""] =
    /^([a-z+]+):\/\/(?:([^@/]*)@)?([^/?]*)(\/[^?]*)?(?:\?(.*))?$/i.exec(url) ?? [];
  return { scheme: scheme.toLowerCase(), user, hosts, path, query };
}

/** The part after the first colon is the password, which may contain colons. */
function userOf(text: string): Pick<DoctorTarget, "username" | "password"> {
  const [, username, password] = /^([^:]*):?(.*)$/s.exec(text) ?? [];
  const decoded = (part = ""): string | undefined => (part === "" ? undefined : decodeURIComponent(part));
  return { username: decoded(username), password: decoded(password) };
}

function endpointsOf(hosts: string, topology: Topology): DoctorTarget["endpoints"] {
  return hosts.split(",").map((host) => endpointOf(host, topology === "sentinel" ? 26_379 : 6_379));
}

function endpointOf(text: string, usualPort: number): { host: string; port: number } {
  const [, host = text, port] = /^(.*?)(?::(\d+))?$/.exec(text) ?? [];
  return { host: host.replace(/^\[|\]$/g, ""), port: Number(port ?? usualPort) };
}
