import type { Example } from "./example.ts";

/** A report consists of parts. Each part locks the same key as the report, so that a part can also be built alone. */
export const reentrant: Example = async (firstProcess, secondProcess, print) => {
  const report = firstProcess.reentrant("report");

  const part = (name: string): Promise<void> =>
    report.withLock(async () => {
      print(`writes ${name}`);
    });

  await report.withLock(async () => {
    await Promise.all([part("the sales"), part("the costs")]); // one after another
    const other = await secondProcess.tryAcquire("report");
    print(other === null ? "nobody else writes" : "somebody else writes");
  });
};
