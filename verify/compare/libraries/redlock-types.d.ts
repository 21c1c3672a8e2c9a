// The package's `exports` hide its types from NodeNext. This file declares the parts in use.
declare module "redlock" {
  interface Settings {
    readonly retryCount?: number;
  }

  export interface Lock {
    readonly expiration: number;
    release(): Promise<unknown>;
  }

  export default class Redlock {
    constructor(clients: Iterable<any>);
    acquire(resources: string[], duration: number, settings?: Settings): Promise<Lock>;
    using<T>(resources: string[], duration: number, routine: (signal: AbortSignal) => Promise<T>): Promise<T>;
  }
}
