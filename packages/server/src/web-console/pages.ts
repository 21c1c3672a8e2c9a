import { newApp, type App } from "../context.ts";
import { ServiceError } from "../refusal.ts";
import { ConsoleFiles } from "./files.ts";

/** The path of the console below the address of the service. */
export const consolePath = "/console";

/** The pages of the console. Each is the same file, and the script shows the page of the path. */
const pages = new Set(["", "lock", "owners", "contention", "nodes", "doctor", "audit", "login"]);

/** The console loads everything from its own service, and no other page may embed it. */
const securityHeaders = {
  "content-security-policy": [
    ...["default-src", "script-src", "style-src", "img-src", "connect-src"].map((name) => `${name} 'self'`),
    ...["base-uri", "form-action", "frame-ancestors"].map((name) => `${name} 'none'`),
  ].join("; "),
  "cross-origin-opener-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** The static files of the console. They contain no data, so that they need no authentication. */
export function consolePages(): App {
  const app = newApp();
  let files: ConsoleFiles | undefined;
  app.use(`${consolePath}/*`, async (c, next) => {
    await next();
    for (const [name, value] of Object.entries(securityHeaders)) {
      c.res.headers.set(name, value);
    }
  });
  app.get(consolePath, (c) => c.redirect(`./console/${new URL(c.req.url).search}`, 308));
  app.get(`${consolePath}/*`, (c) => {
    files ??= openFiles();
    const name = c.req.path.slice(c.req.path.indexOf(`${consolePath}/`) + consolePath.length + 1);
    if (files.has(name)) {
      return files.respond(c.req.raw, name);
    } else if (pages.has(name)) {
      return files.respond(c.req.raw);
    }
    throw new ServiceError("not-found", "The console has no such page");
  });
  return app;
}

function openFiles(): ConsoleFiles {
  try {
    return new ConsoleFiles(new URL("../../dist/console/", import.meta.url));
  } catch {
    throw new ServiceError("not-found", "The web console is not built: run `npm run build`");
  }
}
