import { engineSchemes } from "./engines.ts";

/** The kind of deployment at a URL. */
export type Topology = "memory" | "server" | "sentinel" | "cluster" | "quorum";

/** The address of one server. */
export type Endpoint = { readonly host: string; readonly port: number } | { readonly path: string };

/** The parts of a URL. The options in the query are not yet checked. */
export interface ConnectionUrl {
  readonly topology: Topology;
  readonly isEncrypted: boolean;
  readonly endpoints: readonly Endpoint[];
  /** Sentinel's name for the group of the primary and its replicas. */
  readonly primary: string | undefined;
  readonly database: string | undefined;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly query: ReadonlyMap<string, string>;
}

interface Scheme {
  readonly topology: Topology;
  readonly isEncrypted: boolean;
  readonly isSocket?: boolean;
}

const schemes: Readonly<Record<string, Scheme>> = {
  memory: { topology: "memory", isEncrypted: false },
  redis: { topology: "server", isEncrypted: false },
  rediss: { topology: "server", isEncrypted: true },
  "redis+unix": { topology: "server", isEncrypted: false, isSocket: true },
  "redis+sentinel": { topology: "sentinel", isEncrypted: false },
  "rediss+sentinel": { topology: "sentinel", isEncrypted: true },
  "redis+cluster": { topology: "cluster", isEncrypted: false },
  "rediss+cluster": { topology: "cluster", isEncrypted: true },
  redlock: { topology: "quorum", isEncrypted: false },
  redlocks: { topology: "quorum", isEncrypted: true },
};

const defaultPort = 6379;
const sentinelPort = 26_379;

/**
 * Splits a URL into its parts. A mistyped URL may contain a secret anywhere. Therefore an error shows only the scheme, and names and
 * values of query options that are not secret. The WHATWG parser accepts no lists of hosts, and its errors contain the URL.
 * @throws {TypeError}
 */
export function parseUrl(url: string | URL): ConnectionUrl {
  const { name, scheme, rest } = schemeOf(url);
  if (scheme.topology === "memory") {
    if (rest !== "" && rest !== "//") {
      throw invalidUrl("a memory: URL", "to end with its colon");
    }
    return { ...none, ...scheme };
  }
  const [, authority, path = "", query] = /^\/\/([^/?#]*)(\/[^?#]*)?(?:\?([^#]*))?$/s.exec(rest) ?? [];
  if (authority === undefined) {
    throw invalidUrl("the URL", `to read ${name}://host/path?query, without a fragment; ${encoding}`);
  }
  const { user, hosts } = userOf(authority, `${path}?${query}`);
  const target =
    scheme.isSocket === true ? { endpoints: [socketOf(hosts, path)] } : targetOf(name, scheme, hosts, path);
  return { ...none, ...scheme, ...user, ...target, query: queryOf(query) };
}

const none = {
  endpoints: [],
  primary: undefined,
  database: undefined,
  username: undefined,
  password: undefined,
  query: new Map<string, string>(),
};

const encoding = "in a user name or password, write characters other than letters and digits as %XX";

function schemeOf(url: string | URL): { name: string; scheme: Scheme; rest: string } {
  const text: unknown = url instanceof URL ? url.href : url;
  if (typeof text !== "string") {
    throw new TypeError(`Expected \`url\` to be a string or a URL, got a value of type ${typeof text}`);
  }
  const [, name = "", rest = ""] = /^([^:]*):(.*)$/s.exec(text) ?? [];
  const scheme = Object.hasOwn(schemes, name.toLowerCase()) ? schemes[name.toLowerCase()] : undefined;
  if (scheme === undefined) {
    const given =
      /^[a-z][a-z0-9+.-]{0,30}$/i.test(name) && rest.startsWith("//") ? `${name}:` : "none of them";
    const known = [...Object.keys(schemes), ...engineSchemes, "http", "https"].map((scheme) => `${scheme}:`);
    throw new TypeError(`Expected \`url\` to begin with one of ${known.join(", ")}, got ${given}`);
  }
  return { name: name.toLowerCase(), scheme, rest };
}

function userOf(
  authority: string,
  host: string,
): { user: Pick<ConnectionUrl, "username" | "password">; hosts: string } {
  const parts = authority.split("@");
  if (parts.length > 2 || host.includes("@")) {
    throw invalidUrl("the URL", `to have at most one @, before the hosts; ${encoding}`);
  }
  const [user, hosts] = parts.length === 2 ? (parts as [string, string]) : ["", authority];
  const [, username = "", password = ""] = /^([^:]*):?(.*)$/s.exec(user) ?? [];
  const decode = (text: string): string | undefined =>
    text === ""
      ? undefined
      : decoded(text, () => invalidUrl("the user and the password", `to be encoded: ${encoding}`));
  return { user: { username: decode(username), password: decode(password) }, hosts };
}

function targetOf(name: string, scheme: Scheme, hosts: string, path: string): Partial<ConnectionUrl> {
  const endpoints = endpointsOf(name, scheme, hosts);
  return scheme.topology === "sentinel"
    ? { endpoints, primary: primaryOf(path) }
    : { endpoints, database: databaseOf(scheme, path) };
}

function endpointsOf(name: string, { topology }: Scheme, hosts: string): Endpoint[] {
  const port = topology === "sentinel" ? sentinelPort : defaultPort;
  const endpoints = hosts.split(",").map((text, index) => endpointOf(text, index, port));
  if (topology === "server" && endpoints.length > 1) {
    throw invalidUrl(
      `a ${name}: URL`,
      `to name one host, got ${endpoints.length}; several hosts need ${name}+sentinel, ${name}+cluster or redlock`,
    );
  }
  if (new Set(endpoints.map((endpoint) => Object.values(endpoint).join(" "))).size < endpoints.length) {
    throw invalidUrl("the URL", "to name different hosts, because a repeated host would count twice");
  }
  return endpoints;
}

function endpointOf(text: string, index: number, defaultPort: number): Endpoint {
  const [, host, port = defaultPort] = /^(\[[0-9a-f:.]+\]|[^:[\]%\s]+)(?::(\d{1,5}))?$/i.exec(text) ?? [];
  if (host === undefined || Number(port) < 1 || Number(port) > 65_535) {
    throw invalidUrl(
      `host ${index + 1} of the URL`,
      'to be a name or an address with an optional port, as in "cache-1:6379" or "[::1]:6379"',
    );
  }
  return { host: host.replace(/^\[|\]$/g, "").toLowerCase(), port: Number(port) };
}

function socketOf(hosts: string, path: string): Endpoint {
  if (hosts !== "" || path.length < 2) {
    throw invalidUrl("a redis+unix: URL", "to name a socket and no host, as in redis+unix:///run/redis.sock");
  }
  return { path: decoded(path, () => invalidUrl("the path of the socket", "to be encoded as in any URL")) };
}

function primaryOf(path: string): string {
  const name = /^\/([^/]+)$/.exec(path)?.[1];
  const invalid = (): TypeError =>
    invalidUrl(
      "the path of the URL",
      "to be Sentinel's name of the primary, as in redis+sentinel://h1,h2/primary",
    );
  if (name === undefined) {
    throw invalid();
  }
  return decoded(name, invalid);
}

function databaseOf({ topology }: Scheme, path: string): string | undefined {
  const number = /^\/(\d{1,9})?$/.exec(path === "" ? "/" : path);
  if (number === null) {
    throw invalidUrl("the path of the URL", 'to be the number of a database, as in "/2", or to be empty');
  }
  if (topology === "cluster" && Number(number[1] ?? 0) > 0) {
    throw invalidUrl("the URL of a cluster", "to name no database: a cluster has database 0 only");
  }
  return number[1];
}

function queryOf(query: string | undefined): Map<string, string> {
  const pairs = new Map<string, string>();
  for (const part of query === undefined || query === "" ? [] : query.split("&")) {
    const [, name = "", value] = /^([^=]*)=(.*)$/s.exec(part) ?? [];
    if (value === undefined || !/^[a-z]\w*$/i.test(name)) {
      throw invalidUrl("the query of the URL", `to read name=value&name=value; ${encoding}`);
    }
    const shown = isSecret(query) ? "an option" : `\`${name}\``; // the name may be part of an unencoded secret
    if (pairs.has(name)) {
      throw invalidUrl(shown, "to occur once in the URL, got it twice");
    }
    pairs.set(
      name,
      decoded(value, () => invalidUrl(shown, "to be encoded as in any URL")),
    );
  }
  return pairs;
}

function isSecret(query: string | undefined): boolean {
  return /password=/i.test(query ?? "");
}

function decoded(text: string, invalid: () => TypeError): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid();
  }
}

function invalidUrl(part: string, expected: string): TypeError {
  return new TypeError(`Expected ${part} ${expected}`);
}
