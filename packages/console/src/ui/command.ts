import { serviceUrl } from "../api/client.ts";
import { shellQuote } from "../model/owner.ts";

/** The command that shows a lock in a terminal. */
export function commandFor(key: string): string {
  return `npx holdfast inspect ${shellQuote(key)} --url ${serviceUrl()}`;
}
