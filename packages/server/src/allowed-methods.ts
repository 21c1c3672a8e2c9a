import type { App } from "./context.ts";

/** Finds the methods of the paths of an app, so that a wrong method is not mistaken for a wrong path. */
export class AllowedMethods {
  readonly #routes: readonly { readonly method: string; readonly path: RegExp }[];

  constructor({ routes }: App) {
    this.#routes = routes
      .filter(({ method }) => method !== "ALL")
      .map(({ method, path }) => ({ method, path: new RegExp(`^${path.replaceAll(/:[^/]+/g, "[^/]+")}$`) }));
  }

  /** The methods of the path; empty if there is no such path. */
  of(path: string): string[] {
    const methods = this.#routes.filter((route) => route.path.test(path)).map(({ method }) => method);
    return [...new Set(methods)].sort();
  }
}
