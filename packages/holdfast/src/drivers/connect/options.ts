import { checkInteger, checkOptionNames, checkObject, checkText, invalidValue } from "../../option-checks.ts";
import { resolveRedis, resolveRedlock, type RedisOptions, type RedlockOptions } from "../redis/options.ts";
import type { ConnectionUrl, Topology } from "./url.ts";

/** Options of the connections. The query of the URL accepts them by the same names, unless stated otherwise. */
export interface ConnectionOptions {
  /** The client library. @defaultValue "ioredis", or "node-redis" if ioredis is not installed */
  client?: "ioredis" | "node-redis" | undefined;
  /** In the URL, the user name precedes the host. */
  username?: string | undefined;
  /** In the URL, the password precedes the host. */
  password?: string | undefined;
  /** In a URL with hosts, the path may contain the database instead. @defaultValue 0 */
  database?: number | undefined;
  /** The name of the connections on the servers (`CLIENT SETNAME`). @defaultValue none */
  connectionName?: string | undefined;
  /** How long the opening of a connection may take before the client retries, ms. @defaultValue 5 000 */
  connectTimeoutMs?: number | undefined;
  /** The user name for the sentinels, if they require one. */
  sentinelUsername?: string | undefined;
  /** The password for the sentinels, if they require one. */
  sentinelPassword?: string | undefined;
  /** A file with the authorities (PEM) that may sign the server's certificate. @defaultValue the authorities that Node trusts */
  tlsCaFile?: string | undefined;
  /** A file with the client's certificate (PEM). */
  tlsCertFile?: string | undefined;
  /** A file with the private key (PEM) of the client's certificate. */
  tlsKeyFile?: string | undefined;
  /** The name that the server's certificate must contain. @defaultValue the host of the URL */
  tlsServername?: string | undefined;
  /** `false` accepts any certificate, so any server can pretend to be the requested server. @defaultValue true */
  tlsVerify?: boolean | undefined;
}

/** The name of a layout of `holdfast/redis/layouts`. */
export type LayoutName = "redisson" | "redisson-fenced" | "spring" | "python-redis-lock" | "shedlock";

/** Options of the drivers for one server and for a quorum. `observe` needs a client. */
export type DriverOptions = Omit<RedisOptions, "observe" | "layout"> &
  RedlockOptions & {
    /** The layout of another library. @defaultValue the layout of this library */
    layout?: LayoutName | undefined;
  };

type DriverNames = Exclude<keyof DriverOptions, "clock" | "random">;

interface Parameter {
  readonly parse: "text" | "number" | "boolean";
  /** The topologies that use the parameter. */
  readonly of: readonly Topology[];
  readonly needsTls?: boolean;
  /** The query does not accept the parameter, because the URL has another place for it. */
  readonly isOption?: boolean;
}

const allTopologies: readonly Topology[] = ["server", "sentinel", "cluster", "quorum"];
const sentinel: readonly Topology[] = ["sentinel"];
const quorum: readonly Topology[] = ["quorum"];

const connectionParameters: Readonly<Record<keyof ConnectionOptions, Parameter>> = {
  client: { parse: "text", of: allTopologies },
  username: { parse: "text", of: allTopologies, isOption: true },
  password: { parse: "text", of: allTopologies, isOption: true },
  database: { parse: "number", of: ["server", "sentinel", "quorum"] },
  connectionName: { parse: "text", of: allTopologies },
  connectTimeoutMs: { parse: "number", of: allTopologies },
  sentinelUsername: { parse: "text", of: sentinel },
  sentinelPassword: { parse: "text", of: sentinel },
  tlsCaFile: { parse: "text", of: allTopologies, needsTls: true },
  tlsCertFile: { parse: "text", of: allTopologies, needsTls: true },
  tlsKeyFile: { parse: "text", of: allTopologies, needsTls: true },
  tlsServername: { parse: "text", of: allTopologies, needsTls: true },
  tlsVerify: { parse: "boolean", of: allTopologies, needsTls: true },
};

const driverParameters: Readonly<Record<DriverNames, Parameter>> = {
  prefix: { parse: "text", of: allTopologies },
  commandTimeoutMs: { parse: "number", of: allTopologies },
  claimMs: { parse: "number", of: allTopologies },
  fenceRetentionMs: { parse: "number", of: quorum },
  layout: { parse: "text", of: ["server", "sentinel"] },
  maxQueue: { parse: "number", of: allTopologies },
  minReplicas: { parse: "number", of: ["server", "sentinel"] },
  nodeTimeoutMs: { parse: "number", of: quorum },
  driftFactor: { parse: "number", of: quorum },
  maxTtlMs: { parse: "number", of: quorum },
  maxClockDifferenceMs: { parse: "number", of: quorum },
  restartGuard: { parse: "text", of: quorum },
};

const layoutNames: readonly LayoutName[] = [
  "redisson",
  "redisson-fenced",
  "spring",
  "python-redis-lock",
  "shedlock",
];
const parameters: Readonly<Record<string, Parameter>> = { ...connectionParameters, ...driverParameters };
const forTests = ["clock", "random"];
const secrets = ["password", "sentinelPassword"];

/** The resolved options with which connections are opened. */
export interface Credentials {
  readonly client: "ioredis" | "node-redis" | undefined;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly database: number;
  readonly connectionName: string | undefined;
  readonly connectTimeoutMs: number;
  readonly sentinelUsername: string | undefined;
  readonly sentinelPassword: string | undefined;
  readonly tls: TlsFiles | undefined;
}

export interface TlsFiles {
  readonly caFile: string | undefined;
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
  readonly servername: string | undefined;
  readonly isVerified: boolean;
}

/**
 * Merges the URL and the options. No option may occur in both, and the topology must support every option.
 * @throws {TypeError | RangeError} with the option, the expected value, and the actual value unless it is a secret
 */
export function resolve(
  address: ConnectionUrl,
  options: object,
): { readonly access: Credentials; readonly driver: DriverOptions } {
  checkObject("options", options);
  const known = namesOf(address, () => true);
  checkOptionNames(options, [...known, ...forTests]);
  const given: Record<string, unknown> = { ...options };
  for (const [name, value] of optionsOf(address)) {
    if (given[name] !== undefined) {
      throw new TypeError(`Expected \`${name}\` to be given in the URL or in the options, got it in both`);
    }
    given[name] = value;
  }
  const driver = pick(given, [...Object.keys(driverParameters), ...forTests]);
  const { layout, ...checked } = driver;
  const check = address.topology === "quorum" ? resolveRedlock : resolveRedis;
  check(checked);
  checkLayout(layout);
  return { access: credentialsOf(address, given as ConnectionOptions), driver };
}

/** The layout itself checks the other options when it is loaded. */
function checkLayout(layout: LayoutName | undefined): void {
  if (layout !== undefined && !layoutNames.includes(layout)) {
    throw invalidValue("layout", `one of ${layoutNames.join(", ")}`, layout);
  }
}

/** The options of a driver without connections. The other options are accepted, and have no effect. */
export function withoutConnectionOptions(options: DriverOptions): Pick<DriverOptions, "clock" | "random"> {
  checkOptionNames(options, [...Object.keys(parameters), ...forTests]);
  const { clock, random } = options;
  return { clock, random };
}

/** The names of the parameters that the topology supports. */
function namesOf(
  { topology, isEncrypted }: ConnectionUrl,
  isIncluded: (parameter: Parameter) => boolean,
): readonly string[] {
  return Object.keys(parameters).filter((name) => {
    const parameter = parameters[name] as Parameter;
    return (
      parameter.of.includes(topology) && (isEncrypted || parameter.needsTls !== true) && isIncluded(parameter)
    );
  });
}

/** The options in the URL, by name. */
function optionsOf(address: ConnectionUrl): [string, unknown][] {
  const { username, password, database, query } = address;
  const known = namesOf(address, ({ isOption }) => isOption !== true);
  const values: [string, unknown][] = [];
  for (const [name, text] of query) {
    if (!known.includes(name)) {
      throw unknownOption(address, name, known);
    }
    values.push([name, valueOf(name, text)]);
  }
  if (database !== undefined && query.has("database")) {
    throw new TypeError(
      "Expected `database` to be given in the path of the URL or in its query, got it in both",
    );
  }
  if (database !== undefined) {
    values.push(["database", Number(database)]);
  }
  const user = Object.entries({ username, password }).filter(([, value]) => value !== undefined);
  return [...values, ...user];
}

/** If the query contains a secret, the error shows no name, because part of an unencoded secret may look like a name. */
function unknownOption(
  { query, isEncrypted }: ConnectionUrl,
  name: string,
  known: readonly string[],
): TypeError {
  if (!isEncrypted && parameters[name]?.needsTls === true) {
    return new TypeError(
      `Expected \`${name}\` to be given in a URL with TLS (rediss:, rediss+sentinel:, rediss+cluster:, redlocks:)`,
    );
  }
  const shown = secrets.some((secret) => query.has(secret)) ? "An option" : `\`${name}\``;
  return new TypeError(
    `${shown} in the query of the URL is unknown there; expected one of ${known.join(", ")}`,
  );
}

function valueOf(name: string, text: string): unknown {
  const { parse } = parameters[name] as Parameter;
  if (parse === "number" && !/^-?\d+(\.\d+)?$/.test(text)) {
    throw invalidValue(name, "a number", text);
  }
  if (parse === "boolean" && text !== "true" && text !== "false") {
    throw invalidValue(name, "true or false", text);
  }
  if (parse === "text") {
    return text;
  }
  return parse === "number" ? Number(text) : text === "true";
}

function credentialsOf(address: ConnectionUrl, given: ConnectionOptions): Credentials {
  const { client, database = 0, connectTimeoutMs = 5_000 } = given;
  if (client !== undefined && client !== "ioredis" && client !== "node-redis") {
    throw invalidValue("client", '"ioredis" or "node-redis"', client);
  }
  const text = (name: keyof ConnectionOptions): string | undefined => textOr(name, given[name]);
  return {
    client,
    ...credentials("username", "password", given),
    database: checkInteger("database", database, 0, 1_000_000),
    connectionName: text("connectionName"),
    connectTimeoutMs: checkInteger("connectTimeoutMs", connectTimeoutMs, 100, 600_000),
    ...credentials("sentinelUsername", "sentinelPassword", given),
    tls: address.isEncrypted ? tlsOf(given) : undefined,
  };
}

/** A user name needs a password: one library ignores a lone user name, and the other rejects it. Its cause may be a missing colon. */
function credentials<
  User extends "username" | "sentinelUsername",
  Password extends "password" | "sentinelPassword",
>(user: User, secret: Password, given: ConnectionOptions): Record<User | Password, string | undefined> {
  const username = textOr(user, given[user]);
  const password: unknown = given[secret];
  if (password !== undefined && (typeof password !== "string" || password === "")) {
    throw new TypeError(`Expected \`${secret}\` to be a string that is not empty, got another value`);
  }
  if (username !== undefined && password === undefined) {
    throw new TypeError(
      `Expected a \`${secret}\` with the \`${user}\`, as in user:password@host; a password alone reads :password@host`,
    );
  }
  return { [user]: username, [secret]: password } as Record<User | Password, string | undefined>;
}

/** @throws {TypeError} */
export function tlsOf(given: ConnectionOptions): TlsFiles {
  const text = (name: keyof ConnectionOptions): string | undefined => textOr(name, given[name]);
  const { tlsVerify = true } = given;
  if (typeof tlsVerify !== "boolean") {
    throw invalidValue("tlsVerify", "true or false", tlsVerify);
  }
  const [certFile, keyFile] = [text("tlsCertFile"), text("tlsKeyFile")];
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw new TypeError("Expected `tlsCertFile` and `tlsKeyFile` to be given together, got only one");
  }
  return {
    caFile: text("tlsCaFile"),
    certFile,
    keyFile,
    servername: text("tlsServername"),
    isVerified: tlsVerify,
  };
}

function textOr(name: string, value: unknown): string | undefined {
  return value === undefined ? undefined : checkText(name, value, 4096);
}

function pick(given: Readonly<Record<string, unknown>>, names: readonly string[]): DriverOptions {
  return Object.fromEntries(
    names.filter((name) => given[name] !== undefined).map((name) => [name, given[name]]),
  );
}
