import { pause, type Example } from "./example.ts";

/** An interface that allows three calls at once, over all processes. */
export const semaphore: Example = async (firstProcess, secondProcess, print) => {
  let calls = 0;
  let most = 0;
  const call = async (weight: number): Promise<void> => {
    calls += weight;
    most = Math.max(most, calls);
    await pause(2);
    calls -= weight;
  };
  const users = [firstProcess, secondProcess].flatMap((locks) =>
    [1, 1, 2, 1, 3].map((permits) =>
      locks.semaphore("interface", { limit: 3 }).withLock({ permits }, () => call(permits)),
    ),
  );
  await Promise.all(users);
  print(`at most ${most} calls at once`);
};
