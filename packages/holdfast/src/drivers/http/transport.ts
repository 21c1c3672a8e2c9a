/** TLS of an `https:` service: how to verify its certificate, and the client's own certificate. */
export interface TlsOptions {
  /** The authorities that may sign the service's certificate (PEM). @defaultValue the authorities that Node trusts */
  readonly ca?: string | undefined;
  /** The client's certificate (PEM), with `key`. */
  readonly cert?: string | undefined;
  /** The private key of the client's certificate (PEM). */
  readonly key?: string | undefined;
  /** The name that the service's certificate must contain. @defaultValue the host of the URL */
  readonly servername?: string | undefined;
  /** `false` accepts any certificate, so any server can pretend to be the service. @defaultValue true */
  readonly rejectUnauthorized?: boolean | undefined;
}

export interface TransportRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

/** A reply whose head has arrived. */
export interface TransportReply {
  readonly status: number;
  readonly contentType: string;
  /** Rejects if the connection breaks. A reader that stops before the end closes the connection. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** How requests reach the service. */
export interface Transport {
  /** How many event streams may be open at once, so that other requests still have connections. */
  readonly maxStreams: number;
  /** Rejects if there is no reply, or if the signal aborts. With {@link StaleConnection}, the caller sends the request again. */
  send(request: TransportRequest, signal?: AbortSignal): Promise<TransportReply>;
  /** Ends all requests. */
  close(): void;
}

/** The service had closed a reused connection when the request was sent. */
export class StaleConnection extends Error {}
