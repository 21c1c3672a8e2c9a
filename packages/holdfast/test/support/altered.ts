/** A driver or a connection with other members. */
export function altered<T extends object>(inner: T, changes: Partial<NoInfer<T>>): T {
  return new Proxy(inner, {
    get(target, name) {
      if (Object.hasOwn(changes, name)) {
        return Reflect.get(changes, name);
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
