const metadata = Symbol.for("holdfast.lease-parameter");

/**
 * Passes the lease of `@WithLock` or `@Once` to a parameter of the method. Declare the parameter optional, because callers omit it.
 * In a controller the parameter has no other decorator.
 */
export function InjectLease(): ParameterDecorator {
  return (target, method, index) => {
    if (method === undefined) {
      throw new TypeError(
        "Expected @InjectLease at a parameter of a method, got a parameter of a constructor",
      );
    }
    Reflect.defineMetadata(metadata, index, target, method);
  };
}

/** The arguments with the lease at the parameter that asks for it. */
export function withLease(
  args: readonly unknown[],
  lease: unknown,
  [target, method]: readonly [object, string | symbol],
): unknown[] {
  const index = Reflect.getMetadata(metadata, target, method) as number | undefined;
  const received = [...args];
  if (index !== undefined) {
    received[index] = lease;
  }
  return received;
}
