import type { Node, Nodes } from "../api/types.ts";
import { formatDuration } from "../model/duration.ts";
import { isUsable, lossOfOne } from "../model/nodes.ts";
import { Icon } from "../ui/icons.tsx";
import { PageHead, TableScroll } from "../ui/parts.tsx";
import { PollNotice } from "../ui/poll-notice.tsx";
import { usePoll } from "../ui/use-poll.ts";

/** The servers of the engine. */
export function NodesPage() {
  const { data, error } = usePoll<Nodes>("v1/nodes", {}, 3_000);
  if (data === undefined) return <PollNotice error={error} subject="the nodes of the engine" />;
  const verdict = lossOfOne(data.nodes, data.guarantee);
  return (
    <div class="page">
      <PageHead title="Nodes">
        <p class="muted">
          Guarantee: {data.guarantee}
          {verdict !== "" && ` · ${verdict}`}
        </p>
      </PageHead>
      <TableScroll label="Nodes">
        <table class="table nodes">
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col">State</th>
              <th scope="col">Role</th>
              <th scope="col" class="right">
                Round trip
              </th>
              <th scope="col" class="right">
                Clock offset
              </th>
              <th scope="col" class="right">
                Uptime
              </th>
              <th scope="col">Notifications</th>
              <th scope="col">Replication</th>
              <th scope="col">Version</th>
            </tr>
          </thead>
          <tbody>
            {data.nodes.map((node) => (
              <NodeLine key={node.node} node={node} />
            ))}
          </tbody>
        </table>
      </TableScroll>
    </div>
  );
}

function NodeLine({ node }: { node: Node }) {
  const { latencyMs, clockOffsetMs, uptimeMs, role, version, notifications } = node;
  return (
    <tr>
      <td>
        <code>{node.node}</code>
      </td>
      <td>
        <NodeChip node={node} />
      </td>
      <td>{role ?? "–"}</td>
      <td class="num right">{latencyMs === null ? "–" : `${latencyMs.toFixed(1)}ms`}</td>
      <td class="num right">{clockOffsetMs === null ? "–" : signed(clockOffsetMs)}</td>
      <td class="num right">{uptimeMs === null ? "–" : formatDuration(uptimeMs)}</td>
      <td>{notifications}</td>
      <td>{replicationText(node)}</td>
      <td class="muted">{version ?? "–"}</td>
    </tr>
  );
}

function NodeChip({ node }: { node: Node }) {
  const { reachable, quarantine, error } = node;
  const isUp = isUsable(node);
  const word = isUp ? "up" : reachable ? "quarantine" : "down";
  const until = quarantine?.remainingMs == null ? "" : `, for ${formatDuration(quarantine.remainingMs)}`;
  const why = quarantine === null ? error : `${quarantine.reason}${until}`;
  return (
    <>
      <span class={`chip chip-${isUp ? "held" : "late"}`}>
        <Icon name={isUp ? "ok" : "late"} />
        {word}
      </span>
      {why !== null && <small class="muted why">{why}</small>}
    </>
  );
}

function replicationText({ replication, cluster }: Node): string {
  const slots = cluster === undefined ? "" : `${cluster.slots} slots, ${cluster.state ?? "no reply"}`;
  if (replication === null) return slots === "" ? "–" : slots;
  const { replicas, isLinkUp } = replication;
  const online = replicas.filter(({ isOnline }) => isOnline).length;
  const lag = Math.max(0, ...replicas.map(({ lagBytes }) => lagBytes));
  const replicaText =
    isLinkUp === null
      ? replicas.length === 0
        ? "no replica"
        : `${online} of ${replicas.length} replicas online, lag ${lag} B`
      : isLinkUp
        ? "connected with its primary"
        : "not connected with its primary";
  return slots === "" ? replicaText : `${replicaText}; ${slots}`;
}

function signed(ms: number): string {
  return `${ms >= 0 ? "+" : "−"}${Math.abs(ms).toFixed(1)}ms`;
}
