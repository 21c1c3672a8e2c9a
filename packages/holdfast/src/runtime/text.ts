import { nodeModule } from "./node-modules.ts";

/** The environment of Jest with jsdom has Node's modules, but not these globals. */
const codecs = ("TextEncoder" in globalThis ? globalThis : nodeModule("node:util")) as typeof globalThis;
const encoder = new codecs.TextEncoder();
const decoder = utf8Decoder();

/** A decoder for one text, which may arrive in parts. */
export function utf8Decoder(): InstanceType<typeof codecs.TextDecoder> {
  return new codecs.TextDecoder();
}

export function utf8Bytes(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text);
}

/** Base64 of the URL alphabet, without padding. */
export function toBase64Url(text: string): string {
  let binary = "";
  for (const byte of utf8Bytes(text)) {
    binary += String.fromCharCode(byte);
  }
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The text of {@link toBase64Url}. @throws {Error} if `encoded` is not base64 */
export function fromBase64Url(encoded: string): string {
  const binary = atob(encoded.replaceAll("-", "+").replaceAll("_", "/"));
  return decoder.decode(Uint8Array.from(binary, (character) => character.charCodeAt(0)));
}
