import { Module, type DynamicModule, type FactoryProvider } from "@nestjs/common";
import type { Locks } from "holdfast";

import { LocksHealthIndicator } from "./locks-health-indicator.ts";
import { getLocksToken } from "./locks-token.ts";
import { locksFrom, type AsyncModuleOptions, type FromToken, type ModuleOptions } from "./module-options.ts";

/**
 * Provides `Locks` to all modules of the application. At shutdown, after the last request, the module closes its `Locks`. Waiters
 * reject with `closed`, and leases are released. Nest reports a signal such as SIGTERM only after `app.enableShutdownHooks()`.
 */
export class LocksModule {
  /** @throws {TypeError | RangeError} invalid option, at the start of the application */
  static forRoot({ name, imports, ...options }: ModuleOptions): DynamicModule {
    if ("clientToken" in options && options.clientToken !== undefined) {
      const { clientToken, ...others }: FromToken = options;
      return LocksModule.forRootAsync({
        name,
        imports,
        inject: [clientToken],
        useFactory: (client) => ({ ...others, client }),
      });
    }
    return LocksModule.forRootAsync({
      name,
      imports,
      useFactory: () => options as Exclude<typeof options, FromToken>,
    });
  }

  /** `forRoot` with options from a factory. @throws {TypeError | RangeError} invalid option, at the start of the application */
  static forRootAsync({ name, imports, inject, useFactory }: AsyncModuleOptions): DynamicModule {
    const token = getLocksToken(name);
    const health = name === undefined ? [healthOf(token)] : [];
    return {
      module: LocksModule,
      global: true,
      imports: imports ?? [],
      providers: [
        {
          provide: token,
          inject: inject ?? [],
          useFactory: async (...args: unknown[]) => locksFrom(await useFactory(...args)),
        },
        shutdownOf(token),
        ...health,
      ],
      exports: [token, ...health.map(({ provide }) => provide)],
    };
  }
}

Module({})(LocksModule);

/** Nest calls the hooks of all providers. */
function shutdownOf(token: symbol): FactoryProvider {
  return {
    provide: Symbol(`${String(token.description)}:shutdown`),
    inject: [token],
    useFactory: (locks: Locks) => ({ onApplicationShutdown: () => locks.close() }),
  };
}

function healthOf(token: symbol): FactoryProvider {
  return {
    provide: LocksHealthIndicator,
    inject: [token],
    useFactory: (locks: Locks) => new LocksHealthIndicator(locks),
  };
}
