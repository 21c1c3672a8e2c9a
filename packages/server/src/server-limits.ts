import type { Server, ServerOptions } from "node:http";

import { problemOf } from "./problems.ts";
import { ServiceError } from "./refusal.ts";

/** The limits of one connection before authentication. */
export const limits: ServerOptions = {
  maxHeaderSize: 16_384,
  headersTimeout: 10_000,
  /** The limit of a whole request, body included, ms. */
  requestTimeout: 20_000,
  connectionsCheckingInterval: 1_000,
};

const statuses: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

/** Sends a problem to a client whose request is not HTTP, too long or too slow, and closes its connection. */
export function rejectBadRequests(server: Server): void {
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (error.code === "ECONNRESET" || !socket.writable) {
      socket.destroy();
      return;
    }
    const status = statuses[error.code ?? ""] ?? 400;
    const text = JSON.stringify(
      problemOf(new ServiceError("invalid", "The request is not HTTP, too long, or too slow", {}, status)),
    );
    socket.end(
      `HTTP/1.1 ${status} \r\nContent-Type: application/problem+json\r\nContent-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
    );
  });
}
