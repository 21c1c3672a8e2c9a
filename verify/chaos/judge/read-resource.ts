import type { ResourceRecord } from "./history.ts";
import type { ResourceStory } from "./attempts.ts";

/** Goes through what the resource did, in its order, and looks whether it kept its word. */
export class ResourceReader {
  readonly #stories: Map<string, ResourceStory>;
  readonly #newest = new Map<string, bigint>();
  readonly #newestOfWriters = new Map<string, bigint>();

  constructor(stories: Map<string, ResourceStory>) {
    this.#stories = stories;
  }

  read(record: ResourceRecord): void {
    const { at, key, accepted, from } = record;
    const story = this.#storyOf(key);
    const token = BigInt(record.token);
    const isShared = record.e === "read" && record.shared === true;
    const newest = (isShared ? this.#newestOfWriters : this.#newest).get(key) ?? 0n;
    story.visits += 1;
    if (!accepted) {
      story.refused += 1;
    } else if (token < newest) {
      const whose = isShared ? " of a writer" : "";
      story.faults.push({ at, text: `${token} of ${from} was accepted after ${newest}${whose}` });
    } else {
      raise(this.#newest, key, token);
      if (!isShared) {
        raise(this.#newestOfWriters, key, token);
      }
    }
    if (record.e === "write") {
      this.#write(story, record);
    }
  }

  #write(story: ResourceStory, { at, token, from, accepted, checked, unchecked }: Written): void {
    story.uncheckedWrites += 1;
    story.unchecked = unchecked[1];
    if (accepted) {
      const [before, after] = checked;
      story.checkedWrites += 1;
      story.checked = after;
      if (after !== before + 1) {
        story.faults.push({
          at,
          text: `${from} with ${token} wrote ${after} over ${before} of the counter that checks tokens`,
        });
      }
    }
  }

  #storyOf(key: string): ResourceStory {
    let story = this.#stories.get(key);
    if (!story) {
      story = {
        key,
        visits: 0,
        refused: 0,
        checkedWrites: 0,
        checked: 0,
        uncheckedWrites: 0,
        unchecked: 0,
        faults: [],
      };
      this.#stories.set(key, story);
    }
    return story;
  }
}

function raise(newest: Map<string, bigint>, key: string, token: bigint): void {
  const before = newest.get(key) ?? 0n;
  newest.set(key, token > before ? token : before);
}

type Written = Extract<ResourceRecord, { e: "write" }>;
