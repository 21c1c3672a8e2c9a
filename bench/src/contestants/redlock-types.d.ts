// The package's `exports` hide its types from NodeNext, so this file declares the parts in use.
declare module "redlock" {
  import type { Redis } from "ioredis";

  interface Settings {
    readonly retryCount?: number;
    readonly retryDelay?: number;
    readonly retryJitter?: number;
    readonly automaticExtensionThreshold?: number;
  }

  export interface Lock {
    release(): Promise<unknown>;
  }

  export class ExecutionError extends Error {}

  export default class Redlock {
    constructor(clients: Iterable<Redis>, settings?: Settings);
    acquire(resources: string[], duration: number, settings?: Settings): Promise<Lock>;
    using<T>(resources: string[], duration: number, routine: (signal: AbortSignal) => Promise<T>): Promise<T>;
  }
}
