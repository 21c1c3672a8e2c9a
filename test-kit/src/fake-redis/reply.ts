/** The reply of a command or a script: a bulk string, an integer, nil, a status, an error, or a list of replies. */
export type Reply = string | number | null | Status | ServerError | readonly Reply[];

/** A status reply, such as `OK`. */
export class Status {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** An error reply with the text of Redis. */
export class ServerError extends Error {
  override readonly name = "ReplyError";
}

export const ok: Status = new Status("OK");

export const wrongType = "WRONGTYPE Operation against a key holding the wrong kind of value";
export const notAnInteger = "ERR value is not an integer or out of range";
export const notAFloat = "ERR value is not a valid float";
export const syntaxError = "ERR syntax error";
export const outOfMemory = "OOM command not allowed when used memory > 'maxmemory'.";
export const readOnly = "READONLY You can't write against a read only replica.";
