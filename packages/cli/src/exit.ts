/** The exit codes of every command. `run` also returns the code of its command. */
export const exitCodes = {
  done: 0,
  /** Of `doctor`: a finding of the level `--fail-on` or worse. */
  findings: 1,
  /** Of `doctor`: a critical finding. */
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

/** Ends the program with an exit code and a message, without a stack trace. */
export class Exit extends Error {
  override name = "Exit";
  readonly code: number;

  constructor(code: number, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/** The exit code of an error. The library's errors are recognized by their code, so the library need not be loaded. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof Exit) {
    return error.code;
  }
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof code === "string" && Object.hasOwn(codes, code)) {
    return code === "engine-unavailable" && isRefusal(error) ? exitCodes.notAllowed : (codes[code] as number);
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
  "invalid-key": exitCodes.usage,
  closed: exitCodes.internal,
};

/** Refusals of Redis and of etcd. */
const refusalText =
  /\b(NOAUTH|NOPERM|WRONGPASS|etcdserver: (authentication failed|permission denied|user name is empty))\b/;
/** Refusals of the service, of PostgreSQL (SQLSTATE) and of MySQL. */
const refusalCode =
  /^(unauthenticated|forbidden|28000|28P01|42501|ER_(ACCESS|DBACCESS|TABLEACCESS|PROCACCESS)_DENIED_ERROR)$/;

/** The engine or the service refused the credentials or the request. */
function isRefusal(error: unknown): boolean {
  for (let one = error, depth = 0; one instanceof Error && depth < 8; one = one.cause, depth += 1) {
    const { code } = one as { code?: unknown };
    if (refusalText.test(one.message) || (typeof code === "string" && refusalCode.test(code))) {
      return true;
    }
  }
  return false;
}

/** The library's errors for invalid values begin with "Expected". */
function isInvalidValue(error: unknown): boolean {
  return (
    (error instanceof TypeError || error instanceof RangeError) &&
    /^(Expected|Unknown option) /.test(error.message)
  );
}
