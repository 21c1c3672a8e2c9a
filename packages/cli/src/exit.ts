/** What the exit codes mean, the same in every command; `run` ends with its command's own code beside these. */
export const exitCodes = {
  done: 0,
  /** Of `doctor`: findings as bad as `--fail-on` says. */
  findings: 1,
  /** Of `doctor`: a critical finding is among them. */
  criticalFindings: 2,
  usage: 64,
  unavailable: 69,
  internal: 70,
  notAcquired: 75,
  notAllowed: 77,
  config: 78,
  lost: 79,
  cannotExecute: 126,
  notFound: 127,
} as const;

/** An end with a code of its own, told by its message alone, without a stack. */
export class Exit extends Error {
  override name = "Exit";
  readonly code: number;

  constructor(code: number, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/** Which exit code an error means. Errors of the library are known by their code, so that nothing of it has to be loaded. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof Exit) {
    return error.code;
  }
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof code === "string" && Object.hasOwn(codes, code)) {
    return code === "engine-unavailable" && isInvalidInput(error)
      ? exitCodes.notAllowed
      : (codes[code] as number);
  }
  return isInvalidValue(error) ? exitCodes.usage : exitCodes.internal;
}

const codes: Readonly<Record<string, number>> = {
  "wait-timeout": exitCodes.notAcquired,
  "too-many-waiters": exitCodes.notAcquired,
  "lease-lost": exitCodes.lost,
  "engine-unavailable": exitCodes.unavailable,
  "quorum-not-reached": exitCodes.unavailable,
  "replicas-not-reached": exitCodes.unavailable,
  "self-deadlock": exitCodes.usage,
  "kind-mismatch": exitCodes.config,
  "limit-mismatch": exitCodes.config,
  unsupported: exitCodes.config,
  closed: exitCodes.internal,
};

/** The engine, or the service, is there and does not let us. */
function isInvalidInput(error: unknown): boolean {
  for (let one = error, depth = 0; one instanceof Error && depth < 8; one = one.cause, depth += 1) {
    const { code } = one as { code?: unknown };
    if (
      /\b(NOAUTH|NOPERM|WRONGPASS)\b/.test(one.message) ||
      code === "unauthenticated" ||
      code === "forbidden"
    ) {
      return true;
    }
  }
  return false;
}

/** The library refuses a value with its name, what was expected, and what came. */
function isInvalidValue(error: unknown): boolean {
  return (
    (error instanceof TypeError || error instanceof RangeError) &&
    /^(Expected|Unknown option) /.test(error.message)
  );
}
