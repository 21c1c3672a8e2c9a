/** The parts of an owner's name, as clients write it: `name@host:pid`. */
export interface OwnerParts {
  readonly name: string;
  readonly host?: string;
  readonly pid?: string;
}

export function ownerParts(owner: string): OwnerParts {
  const [, name, host, pid] = /^(.+)@([^@:]+)(?::(\d+))?$/.exec(owner) ?? [];
  if (name === undefined || host === undefined) return { name: owner };
  return { name, host, ...(pid !== undefined && { pid }) };
}

/** The process of an owner: "process 41 on pod-7f9c". Undefined: the name has no host. */
export function processOf(owner: string): string | undefined {
  const { host, pid } = ownerParts(owner);
  if (host === undefined) return undefined;
  return pid === undefined ? `its process on ${host}` : `process ${pid} on ${host}`;
}

/** Quotes an argument for a shell, if it needs quotes. */
export function shellQuote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
