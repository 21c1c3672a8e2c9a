import type { Node } from "../api/types.ts";

/** Whether the votes of a node count now. */
export function isUsable({ reachable, quarantine }: Node): boolean {
  return reachable && quarantine === null;
}

/** The effect of the loss of one more node on a quorum. Empty: the engine has no quorum. */
export function lossOfOne(nodes: readonly Node[], guarantee: string): string {
  if (nodes.length < 2 || (guarantee !== "quorum" && guarantee !== "consensus")) return "";
  const majority = Math.floor(nodes.length / 2) + 1;
  const usable = nodes.filter(isUsable).length;
  if (usable < majority)
    return `No quorum: ${usable} of ${nodes.length} nodes are usable, ${majority} are needed`;
  return usable - 1 >= majority
    ? `Lose one more: still a quorum (${usable - 1} of ${nodes.length}, ${majority} needed)`
    : `Lose one more: no quorum (${usable - 1} of ${nodes.length}, ${majority} needed)`;
}
