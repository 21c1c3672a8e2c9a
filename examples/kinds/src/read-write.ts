import type { Example } from "./example.ts";

/**
 * Many callers read the prices. One caller changes them, then downgrades its lease to a read lease, so that others can read too.
 */
export const readWrite: Example = async (firstProcess, secondProcess, print) => {
  let price = 10;
  const { read } = secondProcess.readWrite("prices");
  const { write } = firstProcess.readWrite("prices");

  const customers = await Promise.all([read.acquire(), read.acquire()]);
  print(`${customers.length} customers look at ${price}`);

  const change = write.withLock(async (lease) => {
    price = 12;
    await lease.downgrade();
    await read.withLock(() => {
      print(`another one looks at ${price}`); // at the same time as this caller
    });
  });
  print((await write.tryAcquire()) === null ? "a change waits for them" : "a change does not wait");
  await Promise.all(customers.map((lease) => lease.release()));
  await change;
};
