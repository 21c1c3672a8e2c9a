import { pause, type Example } from "./example.ts";

/**
 * Transfers between two accounts in both directions at once. Each locks both accounts, and the order of the keys does not matter.
 */
export const severalKeys: Example = async (firstProcess, secondProcess, print) => {
  const accounts = new Map([
    ["account:1", 100],
    ["account:2", 100],
  ]);
  const move = async (from: string, to: string, amount: number): Promise<void> => {
    const [before, target] = [accounts.get(from) ?? 0, accounts.get(to) ?? 0];
    await pause(1);
    accounts.set(from, before - amount);
    accounts.set(to, target + amount);
  };
  const transfers = Array.from({ length: 10 }, (_, turn) => {
    const [from, to] = turn % 2 === 0 ? ["account:1", "account:2"] : ["account:2", "account:1"];
    const locks = turn % 3 === 0 ? firstProcess : secondProcess;
    return locks.all([from as string, to as string]).withLock(() => move(from as string, to as string, 10));
  });
  await Promise.all(transfers);
  print(`together ${[...accounts.values()].reduce((sum, balance) => sum + balance, 0)}`);
};
