const height = 28;
const width = 120;
const baseline = height - 2;

/**
 * A small chart of counts. The newest is at the right, and fewer values than `length` leave the left empty.
 * @param length how many values fill the chart
 */
export function Sparkline({
  values,
  length,
  label,
}: {
  values: readonly number[];
  length: number;
  label: string;
}) {
  const most = Math.max(1, ...values);
  const step = width / Math.max(1, length - 1);
  const start = width - (values.length - 1) * step;
  const points = values.map((value, index) => {
    const y = baseline - (value / most) * (baseline - 4);
    return `${(start + index * step).toFixed(1)},${y.toFixed(1)}`;
  });
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <title>{label}</title>
      <line x1="0" x2={width} y1={baseline} y2={baseline} />
      <polygon points={`${start.toFixed(1)},${baseline} ${points.join(" ")} ${width},${baseline}`} />
      <polyline points={points.join(" ")} />
    </svg>
  );
}
