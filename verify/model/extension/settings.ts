type ExtensionMutant = "refill-counts-at-once" | "break-unnoticed" | "majority-of-answers";

/** Rounds of prolonging have no bound; nor have the grants that nodes let go of, at any time: nothing is assumed of clocks. */
export interface ExtensionSettings {
  readonly nodes: number;
  readonly attempts: number;
  /** false: a reply is heard as soon as the node has answered, or never. true: also later, if no newer one replaces it. */
  readonly lateReplies: boolean;
  /**
   * Who counts as having overtaken the lease: who began after its last confirmation; or (what the code keeps, see README.md) only who
   * began after a node joined it last, too.
   */
  readonly datesFrom: "confirmation" | "joining";
  readonly mutant: ExtensionMutant | undefined;
}

export const defaultExtension: ExtensionSettings = {
  nodes: 3,
  attempts: 2,
  lateReplies: false,
  datesFrom: "joining",
  mutant: undefined,
};
