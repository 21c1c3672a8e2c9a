import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("../../..", import.meta.url));

/** The first line of an error's message, without the path of this repository, because reports are published. */
export function errorText(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return (message.split("\n", 1)[0] ?? "").replaceAll(repository, "");
}
