// The package's `exports` hide its types from NodeNext, so this file declares the parts in use.
declare module "redlock" {
  import type { Redis } from "ioredis";

  export default class Redlock {
    constructor(
      clients: Iterable<Redis>,
      settings?: {
        readonly retryCount?: number;
        readonly retryDelay?: number;
        readonly retryJitter?: number;
      },
    );
    acquire(resources: string[], duration: number): Promise<{ release(): Promise<unknown> }>;
  }
}
