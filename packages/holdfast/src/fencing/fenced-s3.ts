import { checkFencingToken, checkOptionNames } from "../option-checks.ts";
import { tokenText, type FencedOutcome } from "./outcome.ts";

/** The reply of HeadObject, with the names of the AWS SDK. */
export interface S3Head {
  readonly ETag?: string | undefined;
  readonly Metadata?: Readonly<Record<string, string>> | undefined;
}

/** The part of a PutObject that {@link fencedS3} decides, with the names of the AWS SDK. */
export interface S3Put {
  readonly Body: string | Uint8Array;
  readonly Metadata: Record<string, string>;
  /** The write counts only if the object still has this ETag. */
  readonly IfMatch?: string;
  /** The write counts only if no object has the key. */
  readonly IfNoneMatch?: "*";
}

export interface FencedS3Write {
  readonly fencingToken: bigint;
  /** The new content. It must contain the decimal digits of the token: see {@link fencedS3}. */
  readonly body: string | Uint8Array;
  /** Other metadata of the object. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  /** Reads the object's head. It rejects with the status 404 if the key has no object. */
  head(): Promise<S3Head>;
  /** Sends the PutObject. It rejects with the status 412 or 409 if the condition failed. */
  put(request: S3Put): Promise<unknown>;
}

const fenceName = "fence";
/** Each failed condition means that another write succeeded in between, so a loop without end needs as many writers. */
const maxTries = 16;

/**
 * Writes an object of S3 unless it was written with a larger fencing token, by a conditional PutObject (`If-Match`, `If-None-Match`).
 * The token is stored in the metadata `fence`.
 *
 * The body must contain the token, because an ETag is a hash of the body only. If the next holder wrote the bytes
 * that a late holder has read, the late holder's condition would hold.
 *
 * The status of an error is read from `$metadata.httpStatusCode`, `statusCode` or `status`. All other errors reject the call, and so do
 * 16 failed conditions in a row. If the connection fails, the outcome is unknown. Repeating the call is safe.
 * @throws TypeError if the body does not contain the token
 */
export async function fencedS3(write: FencedS3Write): Promise<FencedOutcome> {
  checkOptionNames(write, ["fencingToken", "body", "metadata", "head", "put"]);
  for (let attempt = 1; ; attempt += 1) {
    const request = fencedPut(write, await currentHead(write));
    if (request === "stale") {
      return "stale";
    }
    try {
      await write.put(request);
      return "written";
    } catch (error) {
      if (!isFailedCondition(error) || attempt === maxTries) {
        throw error;
      }
    }
  }
}

/**
 * The PutObject for an object in the state `head`, or `stale` if the object was written with a larger token. It does no I/O.
 * @param head the reply of HeadObject; undefined if the key has no object
 */
export function fencedPut(
  write: Pick<FencedS3Write, "fencingToken" | "body" | "metadata">,
  head: S3Head | undefined,
): S3Put | "stale" {
  const token = tokenText(write.fencingToken);
  if (!Buffer.from(write.body).includes(token)) {
    throw new TypeError(`Expected \`body\` to contain the fencing token ${token}`);
  }
  const request = { Body: write.body, Metadata: { ...write.metadata, [fenceName]: token } };
  if (head === undefined) {
    return { ...request, IfNoneMatch: "*" };
  }
  if (fenceOf(head) > write.fencingToken) {
    return "stale";
  }
  if (head.ETag === undefined) {
    throw new TypeError("Expected the reply of `head` to have an `ETag`");
  }
  return { ...request, IfMatch: head.ETag };
}

/** An object without a fence was written without a guard, so it has seen no token. */
function fenceOf({ Metadata }: S3Head): bigint {
  const text = Metadata?.[fenceName] ?? "0";
  if (!/^\d{1,19}$/.test(text)) {
    throw new TypeError(
      `Expected the metadata \`${fenceName}\` of the object to be a decimal number, got "${text}"`,
    );
  }
  return checkFencingToken(BigInt(text));
}

async function currentHead(write: FencedS3Write): Promise<S3Head | undefined> {
  try {
    return await write.head();
  } catch (error) {
    if (statusOf(error) === 404) {
      return undefined;
    }
    throw error;
  }
}

/** 404: the object was deleted since its head. 409: another conditional write of the key was under way. */
function isFailedCondition(error: unknown): boolean {
  return [404, 409, 412].includes(statusOf(error) as number);
}

function statusOf(error: unknown): unknown {
  const { $metadata, statusCode, status } = (error ?? {}) as {
    readonly $metadata?: { readonly httpStatusCode?: unknown };
    readonly statusCode?: unknown;
    readonly status?: unknown;
  };
  return $metadata?.httpStatusCode ?? statusCode ?? status;
}
