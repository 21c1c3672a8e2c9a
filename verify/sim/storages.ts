import { AsyncLocalStorage } from "node:async_hooks";

/**
 * Node 20 asks every storage that ever ran about every promise, until it is disabled: thousands of worlds in one process would
 * slow each other down.
 * @returns to be called when a world is over: ends the storages that it used
 */
export function endsStorages(): () => void {
  const used = new Set<AsyncLocalStorage<unknown>>();
  const { run } = AsyncLocalStorage.prototype;
  AsyncLocalStorage.prototype.run = function (this: AsyncLocalStorage<unknown>, ...rest: unknown[]) {
    used.add(this);
    return Reflect.apply(run, this, rest) as unknown;
  } as typeof run;
  return () => {
    AsyncLocalStorage.prototype.run = run;
    for (const storage of used) {
      storage.disable();
    }
  };
}
