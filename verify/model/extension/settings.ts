type ExtensionMutant = "refill-counts-at-once" | "break-unnoticed" | "majority-of-answers";

/** Rounds of extension have no bound. Nodes may drop any number of grants at any time, because nothing is assumed about clocks. */
export interface ExtensionSettings {
  readonly nodes: number;
  readonly attempts: number;
  /** false: a reply arrives at once or never. true: a reply may also arrive later, unless a newer one replaces it. */
  readonly lateReplies: boolean;
  /**
   * The attempts that count as having overtaken the lease. With "confirmation" these are the attempts that began after its last confirmation.
   * With "joining" they must also have begun after a node last joined the lease. The code guarantees only the latter, see README.md.
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
