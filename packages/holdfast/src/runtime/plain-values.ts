/** The method that `console.log` and `util.inspect` call on Node, Bun and Deno. */
const inspectCustom = Symbol.for("nodejs.util.inspect.custom");

type Inspect = (value: unknown, options: object) => string;

/** Shows the instances of a class by the name of their public type and by their JSON. */
export function inspectAsJson(prototype: { toJSON(): object }, name: string): void {
  function show(this: { toJSON(): object }, depth: number, options: object, inspect: Inspect): string {
    return depth < 0 ? `[${name}]` : `${name} ${inspect(this.toJSON(), options)}`;
  }
  Object.defineProperty(prototype, inspectCustom, { value: show });
}

interface WithFencingToken {
  readonly fencingToken?: bigint;
}

/** The fields of an object for JSON. The fencing token becomes a decimal string, because JSON has no bigints. */
export function fencingTokenAsText<T extends WithFencingToken>(object: T): object {
  return { ...object, fencingToken: object.fencingToken?.toString() };
}

/** A copy whose JSON has the fencing token as a decimal string. */
export function withJson<T extends WithFencingToken>(object: T): T {
  const copy = { ...object };
  return withHiddenJson(copy, () => fencingTokenAsText(copy));
}

/** Adds a `toJSON` that is not enumerable, so that `structuredClone`, `console.log` and comparisons ignore it. */
export function withHiddenJson<T extends object>(object: T, toJSON: () => object): T & { toJSON(): object } {
  return Object.defineProperty(object, "toJSON", { value: toJSON }) as T & { toJSON(): object };
}
