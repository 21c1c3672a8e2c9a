import { formatCount } from "./report.ts";

export interface Output {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

const steps = 4;

/** Rewrites one line on a terminal. Other outputs, such as a log, get a line at each quarter and each second. */
export function showProgress(
  out: Output,
  label: string,
  total: number,
): Disposable & { done: (count: number) => void } {
  let count = 0;
  let shown = "";
  const show = (): void => {
    const line = `${label}: ${formatCount(count)} of ${formatCount(total)} orders, ${Math.floor((count * 100) / total)} %`;
    if (line === shown) return;
    out.write(out.isTTY ? `\r\u001B[2K${line}` : `${line}\n`);
    shown = line;
  };
  const step = (at: number): number => Math.floor((at * steps) / total);
  const timer = setInterval(show, out.isTTY ? 50 : 1_000);
  return {
    done(now) {
      const reached = step(now) > step(count);
      count = now;
      if (reached) show();
    },
    [Symbol.dispose]() {
      clearInterval(timer);
      show();
      if (out.isTTY) out.write("\n");
    },
  };
}
