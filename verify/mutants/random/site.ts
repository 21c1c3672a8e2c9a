/** A place of a source that a mechanical mutant changes. */
export interface Site {
  /** Offsets in the text. */
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}
