import { Module, type DynamicModule } from "@nestjs/common";

import { LocksModule } from "./locks-module.ts";

/** A `LocksModule` in the memory of the process, for tests without a server. */
export class LocksTestingModule {
  /** @param options.name the name of these `Locks`, if the application has several */
  static forRoot({ name }: { name?: string | undefined } = {}): DynamicModule {
    return LocksModule.forRoot({ name, url: "memory:" });
  }
}

Module({})(LocksTestingModule);
