/** The modules of Node that every entry point of a browser can do without. */
interface NodeModules {
  readonly "node:async_hooks": typeof import("node:async_hooks");
  readonly "node:crypto": typeof import("node:crypto");
  readonly "node:diagnostics_channel": typeof import("node:diagnostics_channel");
  readonly "node:http": typeof import("node:http");
  readonly "node:https": typeof import("node:https");
  readonly "node:os": typeof import("node:os");
  readonly "node:path": typeof import("node:path");
  readonly "node:util": typeof import("node:util");
}

const nodeProcess = (globalThis as { readonly process?: Partial<NodeJS.Process> }).process;

/**
 * A module of Node; undefined in a browser, and in a worker without the modules of Node. The code has no `import` of these modules, so a
 * bundler for browsers accepts the code.
 */
export function nodeModule<Name extends keyof NodeModules>(name: Name): NodeModules[Name] | undefined {
  return nodeProcess?.getBuiltinModule?.(name) as NodeModules[Name] | undefined;
}

/** Reports a condition that a programmer can change: a warning of the process, or of the console where there is no process. */
export function emitWarning(message: string, code: string): void {
  if (nodeProcess?.emitWarning) {
    nodeProcess.emitWarning(message, { code });
  } else {
    console.warn(`${code}: ${message}`);
  }
}

/** The machine and the process; empty in a browser. */
export function hostAndPid(): { readonly host?: string; readonly pid?: number } {
  const os = nodeModule("node:os");
  const pid = nodeProcess?.pid;
  return os && pid !== undefined ? { host: os.hostname(), pid } : {};
}

/** The program, the machine and the process: `worker.js@host-1:4711`. In a browser the page: `browser@shop.example`. */
export function processName(): string {
  const [os, path] = [nodeModule("node:os"), nodeModule("node:path")];
  if (os && path && nodeProcess?.pid !== undefined) {
    const program = path.basename(nodeProcess.argv?.[1] ?? nodeProcess.title ?? "") || "node";
    return `${program}@${os.hostname()}:${nodeProcess.pid}`;
  }
  return siteName();
}

function siteName(): string {
  const { location, navigator } = globalThis as GlobalNames;
  return location?.host ? `browser@${location.host}` : (navigator?.userAgent ?? "unknown");
}

/** Whether the runtime is workerd, the runtime of Cloudflare's workers. Some of its modules of Node have no function. */
export function isWorkerd(): boolean {
  return (globalThis as GlobalNames).navigator?.userAgent === "Cloudflare-Workers";
}

interface GlobalNames {
  readonly location?: { readonly host?: string };
  readonly navigator?: { readonly userAgent?: string };
}
