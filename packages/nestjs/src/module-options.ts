import type { DynamicModule, FactoryProvider, InjectionToken } from "@nestjs/common";
import { createLocks, type Locks, type LocksOptions } from "holdfast";
import { connect, type ConnectOptions } from "holdfast/connect";
import { redis, type RedisClient, type RedisOptions } from "holdfast/redis";

/** `Locks` by a URL. The module opens the connection, and closes it at shutdown. */
export interface FromUrl extends LocksOptions {
  /** The URL of the engine, as `connect` of `holdfast/connect` accepts it. */
  readonly url: string | URL;
  /** The options of `connect`. */
  readonly connect?: ConnectOptions | undefined;
}

/** `Locks` on a client of the application, which the application closes after the module. */
export interface FromClient extends LocksOptions {
  /** A client of ioredis, node-redis or iovalkey. */
  readonly client: RedisClient;
  /** The options of `redis` of `holdfast/redis`. */
  readonly redis?: RedisOptions | undefined;
}

/** `Locks` on a client that another module provides. Import that module unless it is global. */
export interface FromToken extends LocksOptions {
  /** The injection token of a client of ioredis, node-redis or iovalkey. */
  readonly clientToken: InjectionToken;
  /** The options of `redis` of `holdfast/redis`. */
  readonly redis?: RedisOptions | undefined;
}

/** `Locks` that the application has created. The module closes them at shutdown. */
export interface FromLocks {
  readonly locks: Locks;
}

/** Options of `LocksModule.forRoot`: one of `url`, `client`, `clientToken` and `locks`, and the options of `createLocks`. */
export type ModuleOptions = (FromUrl | FromClient | FromToken | FromLocks) & {
  /**
   * The name of these `Locks` for `@InjectLocks`, `@WithLock` and `@Once`, if the application has several.
   * @defaultValue none: the default `Locks`
   */
  readonly name?: string | undefined;
  /** Modules that provide `clientToken`. @defaultValue none */
  readonly imports?: DynamicModule["imports"] | undefined;
};

/** Options of `LocksModule.forRootAsync`. */
export interface AsyncModuleOptions {
  /** The name of these `Locks`, if the application has several. @defaultValue none: the default `Locks` */
  readonly name?: string | undefined;
  /** Modules that provide the arguments of `useFactory`. @defaultValue none */
  readonly imports?: DynamicModule["imports"] | undefined;
  /** The injection tokens of the arguments of `useFactory`. @defaultValue none */
  readonly inject?: FactoryProvider["inject"] | undefined;
  /** Returns one of `url`, `client` and `locks`, and the options of `createLocks`. */
  // oxlint-disable-next-line typescript/no-explicit-any -- as in Nest: the tokens of `inject` decide the types
  readonly useFactory: (...args: any[]) => LocksSource | Promise<LocksSource>;
}

/** The result of a factory of options. */
export type LocksSource = FromUrl | FromClient | FromLocks;

const sources = ["url", "client", "locks"] as const;

/** Creates the `Locks`. @throws {TypeError | RangeError} invalid option */
export async function locksFrom(options: LocksSource): Promise<Locks> {
  const given = withoutUndefined(options);
  checkSource(given);
  if ("locks" in given) {
    return given.locks;
  }
  if ("client" in given) {
    const { client, redis: driverOptions, ...locksOptions } = given;
    return createLocks(redis(client, driverOptions), locksOptions);
  }
  const { url, connect: driverOptions, ...locksOptions } = given;
  const driver = await connect(url, driverOptions);
  try {
    return createLocks(driver, locksOptions);
  } catch (error) {
    await driver.close(); // an open connection would keep the process alive
    throw error;
  }
}

function withoutUndefined(options: LocksSource): LocksSource {
  return Object.fromEntries(
    Object.entries(options ?? {}).filter(([, value]) => value !== undefined),
  ) as unknown as LocksSource;
}

function checkSource(options: LocksSource): void {
  const given = Object.keys(options);
  if (sources.filter((name) => given.includes(name)).length !== 1) {
    throw new TypeError(
      `Expected one of \`url\`, \`client\`, \`clientToken\` and \`locks\` in the options of LocksModule, got ${given.join(", ") || "none"}`,
    );
  }
}
