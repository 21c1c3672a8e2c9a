import type { Capabilities } from "../driver.ts";
import { LockError } from "../errors.ts";
import type { LockKind } from "../lock-state.ts";

const reasonsOnQuorum: Partial<Record<LockKind, string>> = {
  semaphore: ": three permits on each of five nodes would satisfy five holders",
  latch: ": its nodes would count different attempts",
};

/** @throws {LockError} `unsupported`: the engine has no locks of this kind */
export function assertSupported(
  { kinds, guarantee, unsupported }: Capabilities,
  kind: LockKind,
  key: string,
): void {
  if (!kinds.includes(kind)) {
    const known = unsupported?.[kind];
    const onQuorum = guarantee === "quorum" ? (reasonsOnQuorum[kind] ?? "") : "";
    const reason = known === undefined ? onQuorum : `: ${known}`;
    const message = `"${key}": this engine (guarantee "${guarantee}") has no locks of the kind ${kind}${reason}`;
    throw new LockError(message, { code: "unsupported", key });
  }
}
