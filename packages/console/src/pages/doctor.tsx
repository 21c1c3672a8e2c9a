import type { Diagnosis, Finding } from "../api/types.ts";
import { Icon } from "../ui/icons.tsx";
import { Command, Notice, PageHead } from "../ui/parts.tsx";
import { PollNotice } from "../ui/poll-notice.tsx";
import { copy } from "../ui/toast.tsx";
import { usePoll } from "../ui/use-poll.ts";

const levels: readonly {
  readonly names: readonly string[];
  readonly title: string;
  readonly tone: string;
}[] = [
  {
    names: ["critical", "danger"],
    title: "Critical: a lock can have two holders, or be lost",
    tone: "danger",
  },
  { names: ["risk"], title: "Risk: the same, after a failure", tone: "warn" },
  { names: ["perf"], title: "Performance", tone: "plain" },
  { names: ["info"], title: "Good to know", tone: "plain" },
  { names: ["ok"], title: "Checked, without a finding", tone: "ok" },
];

/** The findings of `holdfast doctor`. */
export function DoctorPage() {
  const { data, error, refresh } = usePoll<Diagnosis>("v1/doctor", {}, 60_000);
  if (data === undefined) return <PollNotice error={error} subject="the doctor" />;
  const problems = data.findings.filter(({ level }) => level !== "ok");
  return (
    <div class="page">
      <PageHead title="Doctor">
        <p class="muted">The same checks as holdfast doctor</p>
        <button type="button" onClick={refresh}>
          Check again
        </button>
      </PageHead>
      {problems.length === 0 && (
        <Notice title="No findings" icon="ok">
          <p>The engine is set up well for locks.</p>
        </Notice>
      )}
      {levels.map(({ names, title, tone }) => {
        const findings = data.findings.filter(({ level }) => names.includes(level));
        return findings.length === 0 ? null : (
          <section key={title} class={`findings tone-${tone}`}>
            <h2>
              {title} <span class="num muted">{findings.length}</span>
            </h2>
            <ul>
              {findings.map((finding, index) => (
                <FindingItem key={index} finding={finding} />
              ))}
            </ul>
          </section>
        );
      })}
    </div>
  );
}

/** The parts of a finding. An older service has the advice in `fix`, and its command apart. */
function partsOf({ why, impact, advice, fix, command }: Finding) {
  const danger = why ?? impact;
  return advice === undefined
    ? { danger, text: fix, line: command }
    : { danger, text: advice, line: command ?? fix };
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function FindingItem({ finding }: { finding: Finding }) {
  const { id, node, observed, doc } = finding;
  const { danger, text, line } = partsOf(finding);
  return (
    <li class="finding">
      <h3>
        {observed}
        <small class="muted">
          <code>{id}</code>
          {node !== undefined && ` · ${node}`}
        </small>
      </h3>
      {danger !== undefined && <p>{capitalized(danger)}</p>}
      {text !== undefined && (
        <p>
          <strong>Do:</strong> {text}
        </p>
      )}
      {line !== undefined && (
        <p class="fix">
          <Command text={line} />
          <button
            type="button"
            class="quiet"
            aria-label="Copy the fix"
            onClick={() => void copy(line, "the fix")}
          >
            <Icon name="copy" />
          </button>
        </p>
      )}
      {doc?.startsWith("http") === true && (
        <p>
          <a href={doc} target="_blank" rel="noreferrer">
            Read more
          </a>
        </p>
      )}
    </li>
  );
}
