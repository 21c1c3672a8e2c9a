import { Catch, ConflictException, type ArgumentsHost } from "@nestjs/common";
import { BaseExceptionFilter } from "@nestjs/core";
import { isLockError } from "holdfast";

/** Replies 409 with the holder if a lock stays held for the time that a request waits. */
@Catch()
export class HeldLockFilter extends BaseExceptionFilter {
  override catch(error: unknown, host: ArgumentsHost): void {
    const reply = isLockError(error, "wait-timeout")
      ? new ConflictException({ message: "The order is being paid", holder: error.holder })
      : error;
    super.catch(reply, host);
  }
}
