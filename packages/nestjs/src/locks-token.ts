import { Inject } from "@nestjs/common";

const prefix = "holdfast.locks";

/**
 * The injection token of a module's `Locks`. It is registered globally, so that two copies of this package share it.
 * @param name the `name` of the module, if it has one
 */
export function getLocksToken(name?: string): symbol {
  return Symbol.for(name === undefined ? prefix : `${prefix}:${name}`);
}

/**
 * Injects the `Locks` of a `LocksModule` into a constructor parameter or a property.
 * @param name the `name` of the module, if it has one
 */
export function InjectLocks(name?: string): ParameterDecorator & PropertyDecorator {
  return Inject(getLocksToken(name)) as ParameterDecorator & PropertyDecorator;
}
