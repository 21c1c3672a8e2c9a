import type { ResourceRecord } from "./history.ts";
import type { ResourceHistory } from "./attempts.ts";

/** Replays the records of the resource in order, and checks the rules of the resource. */
export class ResourceReader {
  readonly #stories: Map<string, ResourceHistory>;
  readonly #newest = new Map<string, bigint>();
  readonly #newestOfWriters = new Map<string, bigint>();

  constructor(attempts: Map<string, ResourceHistory>) {
    this.#stories = attempts;
  }

  read(record: ResourceRecord): void {
    const { at, key, accepted, from } = record;
    const attempt = this.#historyOf(key);
    const token = BigInt(record.token);
    const isShared = record.e === "read" && record.shared === true;
    const newest = (isShared ? this.#newestOfWriters : this.#newest).get(key) ?? 0n;
    attempt.visits += 1;
    if (!accepted) {
      attempt.refused += 1;
    } else if (token < newest) {
      const whose = isShared ? " of a writer" : "";
      attempt.violations.push({ at, text: `${token} of ${from} was accepted after ${newest}${whose}` });
    } else {
      raiseNewest(this.#newest, key, token);
      if (!isShared) {
        raiseNewest(this.#newestOfWriters, key, token);
      }
    }
    if (record.e === "write") {
      this.#write(attempt, record);
    }
  }

  #write(attempt: ResourceHistory, { at, token, from, accepted, checked, unchecked }: Written): void {
    attempt.uncheckedWrites += 1;
    attempt.unchecked = unchecked[1];
    if (accepted) {
      const [before, after] = checked;
      attempt.checkedWrites += 1;
      attempt.checked = after;
      if (after !== before + 1) {
        attempt.violations.push({
          at,
          text: `${from} with ${token} wrote ${after} over ${before} of the counter that checks tokens`,
        });
      }
    }
  }

  #historyOf(key: string): ResourceHistory {
    let attempt = this.#stories.get(key);
    if (!attempt) {
      attempt = {
        key,
        visits: 0,
        refused: 0,
        checkedWrites: 0,
        checked: 0,
        uncheckedWrites: 0,
        unchecked: 0,
        violations: [],
      };
      this.#stories.set(key, attempt);
    }
    return attempt;
  }
}

function raiseNewest(newest: Map<string, bigint>, key: string, token: bigint): void {
  const before = newest.get(key) ?? 0n;
  newest.set(key, token > before ? token : before);
}

type Written = Extract<ResourceRecord, { e: "write" }>;
