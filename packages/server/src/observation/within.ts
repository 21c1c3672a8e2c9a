/** Whether the promise resolves within the limit. Rejects with the promise. */
export async function within(limitMs: number, promise: Promise<unknown> | undefined): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, limitMs, false);
  });
  try {
    return await Promise.race([Promise.resolve(promise).then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
