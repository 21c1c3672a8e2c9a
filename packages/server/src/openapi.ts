import type { App } from "./context.ts";

/** The OpenAPI 3.1 document of the service. `holdfast/http` is the typed client of the same interface. */
export function openApiDocument(app: App): object {
  return app.getOpenAPI31Document({
    openapi: "3.1.0",
    info: {
      title: "Holdfast",
      version: "1",
      description: "Locks for every language. Times are milliseconds, fencing tokens decimal strings.",
      license: { name: "MIT", url: "https://opensource.org/license/mit" },
    },
    servers: [{ url: "/", description: "The service that serves this document" }],
    tags: [
      { name: "leases", description: "Acquire, renew and release locks" },
      { name: "locks", description: "The state of locks, and the operations of an operator" },
      { name: "operation", description: "Probes, metrics, and the state of the engine" },
    ],
    security: [{ bearer: [] }, {}],
  });
}

/** Registers the authentication. A service without an auth file needs none. */
export function registerSecurity(app: App): void {
  app.openAPIRegistry.registerComponent("securitySchemes", "bearer", {
    type: "http",
    scheme: "bearer",
    description:
      "A token of the auth file, or a JWT of one of its issuers. A service without an auth file ignores the token",
  });
}
