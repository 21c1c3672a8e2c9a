import { inspect } from "node:util";

/**
 * The key of a method: a template such as `order:{0.id}`, or a function of the arguments. In a template `{0}` is the first argument, and
 * `{0.id}` its property `id`. Each must be a string, a number or a bigint, and not empty.
 */
// oxlint-disable-next-line typescript/no-explicit-any -- the arguments of any method
export type LockKey<A extends readonly any[] = any[]> = string | ((...args: A) => string);

const group = /\{([^{}]*)\}/g;
const placeholder = /^\d+(\.[\w$]+)*$/;

/**
 * @param label names the method in errors
 * @throws {TypeError} invalid template
 */
export function parseKey(
  key: LockKey,
  label: string,
): (instance: object, args: readonly unknown[]) => string {
  if (typeof key === "function") {
    return (instance, args) => key.apply(instance, [...args]);
  }
  if (typeof key !== "string") {
    throw new TypeError(
      `Expected the key of ${label} to be a string or a function, got ${inspect(key, { depth: 0 })}`,
    );
  }
  for (const [text, path] of key.matchAll(group)) {
    if (!placeholder.test(path as string)) {
      throw new TypeError(
        `Expected placeholders such as {0} or {0.id} in the key "${key}" of ${label}, got ${text}. A function may return any key`,
      );
    }
  }
  return (_instance, args) =>
    key.replace(group, (text, path: string) => {
      const value = valueAt(args, path.split("."));
      if (isPart(value)) {
        return String(value);
      }
      throw new TypeError(
        `Expected ${text} in the key "${key}" of ${label} to be a string, a number or a bigint, got ${inspect(value, { depth: 0 })}`,
      );
    });
}

function valueAt(args: readonly unknown[], path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (value, name) =>
      value === undefined || value === null ? undefined : (value as Record<string, unknown>)[name],
    args,
  );
}

function isPart(value: unknown): value is string | number | bigint {
  return (typeof value === "string" && value !== "") || Number.isFinite(value) || typeof value === "bigint";
}
