const paths = {
  held: <path d="M5 7V5.5a3 3 0 0 1 6 0V7m-7 0h8v6H4z" />,
  "held long": <path d="M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M8 4.500V8l2.500 1.500" />,
  late: <path d="M8 2.5 14 13H2zM8 6.5v3m0 1.6v.4" />,
  foreign: <path d="M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M6.3 6.3A1.8 1.8 0 1 1 8 8.6v.6m0 1.6v.4" />,
  "no expiry": (
    <path d="M5 5.5c-3.3 0-3.3 5 0 5C7.500 10.500 8.500 5.500 11 5.500c3.300 0 3.300 5 0 5-2.500 0-3.500-5-6-5" />
  ),
  latch: <path d="M3 3v10M13 3v10M3 8h10" />,
  free: <path d="M5 7V5.500a3 3 0 0 1 5.600-1.500M4 7h8v6H4z" />,
  copy: <path d="M6 6h7v7H6zM3 10V3h7" />,
  link: (
    <path d="M7 9a3 3 0 0 0 4.200.2l2-2a3 3 0 0 0-4.300-4.200L8 4M9 7a3 3 0 0 0-4.200-.2l-2 2a3 3 0 0 0 4.300 4.200L8 12" />
  ),
  search: <path d="M7 2.500a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9M10.500 10.500 14 14" />,
  open: <path d="m5 6 3 3.500L11 6" />,
  closed: <path d="m6 5 3.500 3L6 11" />,
  close: <path d="m4 4 8 8M12 4l-8 8" />,
  sun: (
    <path d="M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1.500v1.500M8 13v1.500M1.500 8H3M13 8h1.500M3.400 3.400l1 1M11.600 11.600l1 1M3.400 12.600l1-1M11.600 4.400l1-1" />
  ),
  moon: <path d="M13 9.500A5.500 5.500 0 0 1 6.500 3 5.500 5.500 0 1 0 13 9.500" />,
  auto: <path d="M8 2.500a5.500 5.500 0 1 0 0 11zM8 2.500a5.500 5.500 0 0 1 0 11" />,
  back: <path d="M9.500 4 5.500 8l4 4" />,
  ok: <path d="m3.500 8.500 3 3 6-7" />,
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      {paths[name]}
    </svg>
  );
}

/** The mark of Holdfast. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="7" class="mark-ground" />
      <path d="M11 15v-4a5 5 0 0 1 10 0v4" class="mark-line" />
      <rect x="7.5" y="14" width="17" height="12" rx="2.5" class="mark-body" />
      <path d="M16 18v4" class="mark-hole" />
    </svg>
  );
}
