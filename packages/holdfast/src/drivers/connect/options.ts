import { checkInteger, checkOptionNames, checkObject, checkText, invalidValue } from "../../options.ts";
import { resolveRedis, resolveRedlock, type RedisOptions, type RedlockOptions } from "../redis/options.ts";
import type { ConnectionUrl, Topology } from "./url.ts";

/** What can be said about the connections; by the same name in the query of the URL, if not stated otherwise. */
export interface ConnectionOptions {
  /** Which library to use. @defaultValue "ioredis", and where it is not installed "node-redis" */
  client?: "ioredis" | "node-redis" | undefined;
  /** In the URL it stands before the host. */
  username?: string | undefined;
  /** In the URL it stands before the host. */
  password?: string | undefined;
  /** In a URL with hosts it may also be the path. @defaultValue 0 */
  database?: number | undefined;
  /** By which the servers know our connections (`CLIENT SETNAME`). @defaultValue none */
  connectionName?: string | undefined;
  /** How long the opening of a connection may take before it is tried anew, ms. @defaultValue 5 000 */
  connectTimeoutMs?: number | undefined;
  /** Of the sentinels themselves, if they have one. */
  sentinelUsername?: string | undefined;
  /** Of the sentinels themselves, if they have one. */
  sentinelPassword?: string | undefined;
  /** A file with the certificates (PEM) of who may sign the server's. @defaultValue those that Node trusts */
  tlsCaFile?: string | undefined;
  /** A file with our own certificate (PEM). */
  tlsCertFile?: string | undefined;
  /** A file with the key of our own certificate (PEM). */
  tlsKeyFile?: string | undefined;
  /** The name that the server's certificate has to have. @defaultValue the host of the URL */
  tlsServername?: string | undefined;
  /** `false`: any certificate will do, and anybody can pretend to be the server. @defaultValue true */
  tlsVerify?: boolean | undefined;
}

/** Of one server and of a quorum. */
export type DriverOptions = RedisOptions & RedlockOptions;

type DriverNames = Exclude<keyof DriverOptions, "clock" | "random">;

interface Parameter {
  readonly parse: "text" | "number" | "boolean";
  /** Where it has a meaning. */
  readonly of: readonly Topology[];
  readonly needsTls?: boolean;
  /** Not in the query: it has a place of its own in the URL. */
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
  maxQueue: { parse: "number", of: allTopologies },
  minReplicas: { parse: "number", of: ["server", "sentinel"] },
  nodeTimeoutMs: { parse: "number", of: quorum },
  driftFactor: { parse: "number", of: quorum },
  maxTtlMs: { parse: "number", of: quorum },
  maxClockDifferenceMs: { parse: "number", of: quorum },
  restartGuard: { parse: "text", of: quorum },
};

const parameters: Readonly<Record<string, Parameter>> = { ...connectionParameters, ...driverParameters };
const forTests = ["clock", "random"];
const secrets = ["password", "sentinelPassword"];

/** What connections are opened with. */
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
 * Puts together what the URL and the options say. Nothing may be said twice, and nothing that has no meaning there.
 * @throws {TypeError | RangeError} that names the option, what was expected, and what came unless that is a secret
 */
export function resolve(
  address: ConnectionUrl,
  options: object,
): { readonly access: Credentials; readonly driver: DriverOptions } {
  checkObject("options", options);
  const known = namesOf(address, () => true);
  checkOptionNames(options, [...known, ...forTests]);
  const given: Record<string, unknown> = { ...options };
  for (const [name, value] of givenBy(address)) {
    if (given[name] !== undefined) {
      throw new TypeError(`Expected \`${name}\` to be given in the URL or in the options, got it in both`);
    }
    given[name] = value;
  }
  const driver = pick(given, [...Object.keys(driverParameters), ...forTests]);
  const check = address.topology === "quorum" ? resolveRedlock : resolveRedis;
  check(driver);
  return { access: credentialsOf(address, given as ConnectionOptions), driver };
}

/** Of the options those that a driver without connections has a use for; the others may be given, and mean nothing to it. */
export function withoutConnectionOptions(options: DriverOptions): Pick<DriverOptions, "clock" | "random"> {
  checkOptionNames(options, [...Object.keys(parameters), ...forTests]);
  const { clock, random } = options;
  return { clock, random };
}

/** The names that mean something there. */
function namesOf(
  { topology, isEncrypted }: ConnectionUrl,
  isMeant: (parameter: Parameter) => boolean,
): readonly string[] {
  return Object.keys(parameters).filter((name) => {
    const parameter = parameters[name] as Parameter;
    return (
      parameter.of.includes(topology) && (isEncrypted || parameter.needsTls !== true) && isMeant(parameter)
    );
  });
}

/** All that the URL says, by the names of the options. */
function givenBy(address: ConnectionUrl): [string, unknown][] {
  const { username, password, database, query } = address;
  const known = namesOf(address, ({ isOption }) => isOption !== true);
  const values: [string, unknown][] = [];
  for (const [name, text] of query) {
    if (!known.includes(name)) {
      throw unknown(address, name, known);
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

/** A part of a secret that was not encoded may look like a name: where there is one in the query, no name is shown. */
function unknown({ query, isEncrypted }: ConnectionUrl, name: string, known: readonly string[]): TypeError {
  if (!isEncrypted && parameters[name]?.needsTls === true) {
    return new TypeError(
      `Expected \`${name}\` to stand in a URL with TLS (rediss:, rediss+sentinel:, rediss+cluster:, redlocks:)`,
    );
  }
  const what = secrets.some((secret) => query.has(secret)) ? "An option" : `\`${name}\``;
  return new TypeError(
    `${what} in the query of the URL is unknown there; expected one of ${known.join(", ")}`,
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

/** A user without a password would be ignored by one library and refused by the other; a forgotten colon looks the same. */
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
    throw new TypeError("Expected `tlsCertFile` and `tlsKeyFile` to be given together, got one of them");
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
