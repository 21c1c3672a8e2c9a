import type { ResourceRecord } from "./history.ts";
import type { ResourceStory } from "./stories.ts";

/** Goes through what the resource did, in its order, and looks whether it kept its word. */
export class ResourceReader {
  readonly #stories: Map<string, ResourceStory>;
  readonly #newest = new Map<string, bigint>();

  constructor(stories: Map<string, ResourceStory>) {
    this.#stories = stories;
  }

  read(record: ResourceRecord): void {
    const { at, key, accepted, from } = record;
    const story = this.#storyOf(key);
    const token = BigInt(record.token);
    const newest = this.#newest.get(key) ?? 0n;
    story.visits += 1;
    if (!accepted) {
      story.refused += 1;
    } else if (token < newest) {
      story.faults.push({ at, text: `${token} of ${from} was accepted after ${newest}` });
    } else {
      this.#newest.set(key, token);
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

type Written = Extract<ResourceRecord, { e: "write" }>;
