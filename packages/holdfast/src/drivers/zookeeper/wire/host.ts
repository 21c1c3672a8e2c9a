/** The address of a server. */
export interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

export function nameOf({ host, port }: HostAndPort): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
