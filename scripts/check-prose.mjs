// Checks the prose of comments, messages and Markdown by the rules of CONTRIBUTING.md.
//
//   node scripts/check-prose.mjs [path ...]            lists each finding as `path:line rule: text`, and exits 1 if there is one
//   node scripts/check-prose.mjs --count [path ...]    counts the findings of each folder
//   node scripts/check-prose.mjs --advice [path ...]   also lists sentences with more than 25 words, which is advice and no failure
//
// Without a path, all tracked TypeScript, JavaScript, Lua and Markdown files are read. Code, inline code, links' targets and tables'
// numbers are no prose.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

import { parseSync } from "oxc-parser";

const longestSentence = 25;
const root = join(dirname(fileURLToPath(import.meta.url)), "..");

/** What is checked, and what is not: generated files, recorded results, and this list itself. */
const read = /\.(ts|mjs|lua|md)$/;
const skipped = /generated|^bench\/results\/|^packages\/[^/]+\/etc\/|^scripts\/(test\/)?check-prose/;

const wordRules = [
  [/\b(he|him|his|himself)\b/i, "pronoun"],
  [/\b(behind|meanwhile|mend(s|ed|ing)?|dear|tell(s|ing)?|told|hear(s|d|ing)?|nobody)\b/i, "word"],
  [/\bby (itself|themselves)\b/i, "word"],
  [/\bany ?more\b(?! than)/i, "word"],
  [/\b(give[sn]?|gave|giving|take[sn]?|took|taking) (it |them |that )?back\b/i, "word"],
  [/\b(give[sn]?|gave|giving) (it |them |that )?up\b/i, "word"],
  [/\bpass(es|ed|ing)? (it |them )?on\b/i, "word"],
  [/\b(is|are|was|were) (over|gone)\b/i, "word"],
  [/\bso (many|long|much)\b(?! as)/i, "word"],
  [/\bwhere (that|it|this) is\b/i, "word"],
];
const opening = /^(Who|What|Whoever|Whatever|Whose|That of|Those|The same|Everybody|Somebody)\b(?!.*\?$)/;

/** @returns [rule, text] for each finding in one paragraph of prose */
export function check(paragraph) {
  return sentences(paragraph).flatMap((sentence) => {
    const found = [];
    const words = sentence.split(/\s+/).filter((word) => /[A-Za-z0-9`]/.test(word));
    if (words.length > longestSentence) found.push(["length", `${words.length} words: ${sentence}`]);
    if (opening.test(sentence)) found.push(["opening", sentence]);
    if ((sentence.match(/;|:(?=\s)/g) ?? []).length > 2) found.push(["chain", sentence]);
    for (const [pattern, rule] of wordRules) {
      const [hit] = pattern.exec(sentence) ?? [];
      if (hit) found.push([rule, `"${hit}": ${sentence}`]);
    }
    return found;
  });
}

function sentences(paragraph) {
  const plain = paragraph
    .replace(/`[^`]*`/g, "`x`")
    .replace(/\{@\w+ [^}]*\}/g, "`x`")
    .replace(/\]\([^)]*\)/g, "]")
    .replace(/https?:\/\/\S+/g, "`x`")
    .replace(/\s+/g, " ")
    .trim();
  return plain
    .split(/(?<=[.!?][")\]*]*)\s+(?=["(`[*]*(?:[A-Z0-9`]|ioredis|node-redis))/)
    .filter((sentence) => sentence !== "");
}

/** @returns { line, text } for each paragraph of prose in a file */
export function paragraphsOf(path, text) {
  if (path.endsWith(".md")) return markdown(text);
  return path.endsWith(".lua") ? lua(text) : script(path, text);
}

function markdown(text) {
  const paragraphs = [];
  let isCode = false;
  let open;
  for (const [index, line] of text.split("\n").entries()) {
    if (/^\s*(```|~~~)/.test(line)) isCode = !isCode;
    const isBreak = isCode || /^\s*(```|~~~|$|#|<|\|)/.test(line);
    if (isBreak || /^\s*([-*+]|\d+\.)\s/.test(line)) open = undefined;
    if (!isCode && /^\s*\|/.test(line) && !/^\s*\|[\s:|-]+$/.test(line)) {
      paragraphs.push(...line.split("|").map((cell) => ({ line: index + 1, text: cell.trim() })));
    } else if (!isBreak) {
      const own = line.replace(/^\s*(?:[-*+]|\d+\.|>)\s+/, "").trim();
      if (open) open.text += ` ${own}`;
      else paragraphs.push((open = { line: index + 1, text: own }));
    }
  }
  return paragraphs.filter((paragraph) => paragraph.text !== "");
}

function lua(text) {
  const lines = text
    .split("\n")
    .map((line, index) => ({ line: index + 1, text: /^\s*--(?!-)\s?(.*)$/.exec(line)?.[1] }));
  return joined(lines);
}

/** Lines that follow each other make a paragraph, until an empty one or an indented list of names. */
function joined(lines) {
  const paragraphs = [];
  let open;
  for (const { line, text } of lines) {
    if (text === undefined || text.trim() === "" || /^\s{2,}/.test(text)) open = undefined;
    if (text === undefined || text.trim() === "") continue;
    if (open) open.text += ` ${text.trim()}`;
    else paragraphs.push((open = { line, text: text.trim() }));
  }
  return paragraphs;
}

function script(path, text) {
  const { comments, program } = parseSync(path, text);
  const lineOf = lineCounter(text);
  const blocks = comments.flatMap(({ type, value, start }) => {
    const first = lineOf(start);
    const lines = value
      .split("\n")
      .map((line, index) => ({ line: first + index, text: line.replace(/^\s*\*?\s?/, "") }));
    return type === "Line"
      ? [{ line: first, text: value.trim(), isLine: true }]
      : tags(lines).flatMap(joined);
  });
  const messages = [];
  walk(program, (node) => {
    const value =
      node.type === "Literal" ? node.value : node.type === "TemplateLiteral" ? template(node) : undefined;
    if (typeof value === "string" && isSentence(value))
      messages.push({ line: lineOf(node.start), text: value });
  });
  return [...adjacent(blocks), ...messages];
}

/** Each tag of TSDoc begins a paragraph of its own. */
function tags(lines) {
  const parts = [[]];
  for (const line of lines) {
    const tag = /^@(\w+)(\s+\{[^}]*\})?(\s+[\w.]+\s+-)?\s*(.*)$/.exec(line.text);
    if (tag)
      parts.push([{ line: line.line, text: tag[1] === "param" ? tag[4].replace(/^\S+\s*/, "") : tag[4] }]);
    else parts.at(-1).push({ line: line.line, text: line.text.replace(/^\s+/, "") });
  }
  return parts;
}

/** Comments of one line each that follow each other are one text. */
function adjacent(blocks) {
  const merged = [];
  for (const block of blocks) {
    const last = merged.at(-1);
    if (block.isLine && last?.isLine && last.end + 1 === block.line) {
      last.text += ` ${block.text}`;
      last.end = block.line;
    } else merged.push({ ...block, end: block.line });
  }
  return merged;
}

function template(node) {
  return node.quasis.map(({ value }) => value.cooked ?? "").join("x");
}

function isSentence(value) {
  return (
    !value.includes("\n") &&
    /^[A-Z"`]?[\w"'`,;:()%/-]+( [\w"'`,;:()%/.-]+){3,}/.test(value) &&
    !/[{}=<>\\]|\$\(|; (do|done)\b|^trap /.test(value) // no code, such as a line for a shell
  );
}

function walk(node, visit) {
  if (Array.isArray(node)) for (const each of node) walk(each, visit);
  else if (node && typeof node === "object") {
    if (typeof node.type === "string") visit(node);
    for (const [key, value] of Object.entries(node)) if (key !== "source") walk(value, visit);
  }
}

function lineCounter(text) {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return (offset) => {
    let [low, high] = [0, starts.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (starts[middle] <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  };
}

function main(args) {
  const isCount = args.includes("--count");
  const isAdvice = args.includes("--advice");
  const wanted = args.filter((arg) => !arg.startsWith("--"));
  const files = execFileSync("git", ["ls-files", ...wanted], { cwd: root, encoding: "utf8", maxBuffer: 1e8 });
  const counts = new Map();
  let total = 0;
  let long = 0;
  for (const path of files
    .trim()
    .split("\n")
    .filter((file) => read.test(file) && !skipped.test(file))) {
    for (const { line, text } of paragraphsOf(path, readFileSync(join(root, path), "utf8"))) {
      for (const [rule, about] of check(text)) {
        if (rule === "length") {
          long += 1;
          if (isAdvice) console.log(`${path}:${line} advice: ${about}`);
          continue;
        }
        total += 1;
        const folder = path.split("/").slice(0, 3).join("/");
        counts.set(folder, (counts.get(folder) ?? 0) + 1);
        if (!isCount) console.log(`${path}:${line} ${rule}: ${about}`);
      }
    }
  }
  for (const [folder, count] of isCount ? counts : []) console.log(`${String(count).padStart(6)} ${folder}`);
  if (long > 0)
    console.log(`${long} sentences have more than ${longestSentence} words (advice; --advice lists them)`);
  console.log(`${total} findings`);
  process.exitCode = total > 0 ? 1 : 0;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) main(process.argv.slice(2));
