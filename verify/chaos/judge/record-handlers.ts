/** A handler for each kind of record. */
export type Handlers<Kept extends { readonly e: string }> = {
  readonly [Name in Kept["e"]]: (record: Extract<Kept, { readonly e: Name }>) => void;
};

export function handledBy<Kept extends { readonly e: string }>(
  handlers: Handlers<Kept>,
): (record: Kept) => void {
  return (record) => {
    (handlers[record.e as Kept["e"]] as (record: Kept) => void)(record);
  };
}
