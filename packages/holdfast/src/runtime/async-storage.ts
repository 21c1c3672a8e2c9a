import type { AsyncLocalStorage } from "node:async_hooks";

import { nodeModule } from "./node-modules.ts";

/** The storage of a value for the calls of one function and all that they start. Without `node:async_hooks` it stores nothing. */
export function asyncStorage<T>(): Pick<AsyncLocalStorage<T>, "run" | "getStore"> {
  const hooks = nodeModule("node:async_hooks");
  return hooks
    ? new hooks.AsyncLocalStorage<T>()
    : ({ run: (_: T, work: () => unknown) => work(), getStore: () => undefined } as never);
}
