import { Catch, ConflictException, type ArgumentsHost } from "@nestjs/common";
import { BaseExceptionFilter } from "@nestjs/core";
import { isLockError } from "holdfast";

/**
 * Replies 409 if a lock stays held for the time that a request waits. Clients do not learn who the holder is. A lost lease is a 500, and
 * no 503 after which they repeat the request, because the payment may have been made.
 */
@Catch()
export class HeldLockFilter extends BaseExceptionFilter {
  override catch(error: unknown, host: ArgumentsHost): void {
    const reply = isLockError(error, "wait-timeout")
      ? new ConflictException({ message: "The order is being paid", code: error.code })
      : error;
    super.catch(reply, host);
  }
}
