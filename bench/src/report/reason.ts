import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("../../..", import.meta.url));

/** An error's message in one line, without the place of this repository: reports are published. */
export function errorText(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return (message.split("\n", 1)[0] ?? "").replaceAll(repository, "");
}
