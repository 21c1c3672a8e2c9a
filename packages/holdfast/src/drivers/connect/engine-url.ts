import { checkObject, checkOptionNames } from "../../option-checks.ts";

/** How the text of an option in the query of a URL is read. */
export type OptionType = "text" | "number" | "boolean";

/** The URL without the options of Holdfast, for the client library, and these options. */
export interface EngineUrl {
  readonly url: URL;
  readonly options: Readonly<Record<string, unknown>>;
}

const forTests = ["clock", "random"];

/**
 * Parses a URL of one host. The options of the driver stand in its query or in `options`, but none in both.
 * @throws {TypeError} with the option, the expected value and the actual value. The URL is not shown, because it may contain a secret
 */
export function readEngineUrl(
  text: string,
  given: object,
  known: Readonly<Record<string, OptionType>>,
): EngineUrl {
  checkObject("options", given);
  checkOptionNames(given, [...Object.keys(known), ...forTests]);
  const url = parse(text);
  const options: Record<string, unknown> = { ...given };
  for (const [name, type] of Object.entries(known)) {
    const values = url.searchParams.getAll(name);
    if (values.length > 1 || (values.length === 1 && options[name] !== undefined)) {
      throw new TypeError(
        `Expected \`${name}\` to be given once, in the URL or in the options, got it twice`,
      );
    }
    if (values.length === 1) {
      options[name] = valueOf(name, values[0] as string, type);
      url.searchParams.delete(name);
    }
  }
  return { url, options };
}

function parse(text: string): URL {
  try {
    return new URL(text);
  } catch {
    const encoding = "in a user name or password, write characters other than letters and digits as %XX";
    throw new TypeError(`Expected the URL to read scheme://user:password@host:port/path?query; ${encoding}`);
  }
}

function valueOf(name: string, text: string, type: OptionType): unknown {
  if (type === "text") {
    return text;
  }
  const value =
    type === "number" ? Number(text === "" ? Number.NaN : text) : { true: true, false: false }[text];
  if (value === undefined || Number.isNaN(value)) {
    const expected = type === "number" ? "a number" : "true or false";
    throw new TypeError(
      `Expected \`${name}\` in the URL to be ${expected}, got ${JSON.stringify(text.slice(0, 80))}`,
    );
  }
  return value;
}
