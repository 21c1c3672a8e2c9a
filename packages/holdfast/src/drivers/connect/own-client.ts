import type { Driver } from "../../driver.ts";
import { LockError } from "../../errors.ts";

/** Makes `close` of the driver also close the clients that were opened for the driver. */
export function withClose(driver: Driver, closeClients: () => Promise<void> | void): Driver {
  const close = driver.close.bind(driver);
  driver.close = async () => {
    try {
      await close();
    } finally {
      await closeClients();
    }
  };
  return driver;
}

/** Whether an import failed because this package is not installed. A broken package is another failure, which must be shown. */
export function isNotInstalled(name: string, error: unknown): boolean {
  const { code, message } = error as NodeJS.ErrnoException;
  const isMissing = code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND";
  return isMissing && message.includes(`'${name}'`);
}

/** The error to throw for a failed import of a client library. */
export function importFailure(name: string, error: unknown): unknown {
  return isNotInstalled(name, error)
    ? new LockError(`connect() needs the client library ${name}: npm install ${name}`, {
        code: "unsupported",
      })
    : error;
}
