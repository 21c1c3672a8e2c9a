// The server and its scripts process bytes, not characters. In this folder, a text of bytes has one character below 256 for each
// byte.

const beyondAscii = /[\u0080-\uffff]/;

/** The bytes of a text in UTF-8. */
export function toBytes(text: string): string {
  return beyondAscii.test(text) ? Buffer.from(text).toString("latin1") : text;
}

/** The text of which these are the bytes in UTF-8. */
export function fromBytes(bytes: string): string {
  return beyondAscii.test(bytes) ? Buffer.from(bytes, "latin1").toString() : bytes;
}
