/** A place of a source where a mechanical mutant changes something. */
export interface Site {
  /** Offsets in the text. */
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}
