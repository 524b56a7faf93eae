/** Outlines on a grid of 16, drawn for this console. */
const paths = {
  access:
    'M2.5 8h4M9.500 8h4M8 6.500v3M6.500 8a1.500 1.500 0 1 0 3 0 1.500 1.500 0 1 0-3 0M2.500 5.500v5M13.500 5.500v5',
  alert: 'M8 2.500 14 13H2zM8 6.500v3M8 11.300v.1',
  back: 'M9.500 3.500 5 8l4.500 4.500',
  backup: 'M8 2.500v7M5 7l3 3 3-3M3 12.500h10',
  check: 'M3.500 8.500 6.500 11.500 12.500 4.500',
  circuit: 'M3 4.500h4.500v7H13M11 9.500l2 2-2 2M3 4.500m-1 0a1 1 0 1 0 2 0 1 1 0 1 0-2 0',
  close: 'M4 4l8 8M12 4l-8 8',
  cluster: 'M2.500 3.500h11v3.500h-11zM2.500 9h11v3.500h-11zM5 5.250v.1M5 10.750v.1',
  config: 'M3 4.500h6M12 4.500h1M3 11.500h1M7 11.500h6M10.500 3v3M5.500 10v3',
  copy: 'M5.500 5.500h8v8h-8zM10.500 5.500v-3h-8v8h3',
  dark: 'M13 9.500A5.500 5.500 0 0 1 6.500 3a5.500 5.500 0 1 0 6.500 6.500z',
  down: 'M4 6.500 8 10.500 12 6.500',
  dot: 'M8 8m-3 0a3 3 0 1 0 6 0 3 3 0 1 0-6 0',
  edit: 'M10.500 3 13 5.500 6 12.500l-3 .500.500-3z',
  event: 'M3 4.500h10M3 8h7M3 11.500h9',
  help: 'M6 6.200A2 2 0 1 1 8.700 8c-.5.300-.7.600-.7 1.200M8 11.500v.1M8 8m-6 0a6 6 0 1 0 12 0 6 6 0 1 0-12 0',
  identity:
    'M8 5.500m-2.500 0a2.500 2.500 0 1 0 5 0 2.500 2.500 0 1 0-5 0M3 13.500c.600-2.800 2.500-4 5-4s4.400 1.200 5 4',
  info: 'M8 7.500v3.500M8 5v.1M8 8m-6 0a6 6 0 1 0 12 0 6 6 0 1 0-12 0',
  key: 'M10 6m-3 0a3 3 0 1 0 6 0 3 3 0 1 0-6 0M7.800 8.200 3 13M4.500 11.500l1.500 1.500',
  leave: 'M9.500 2.500h-6v11h6M7 8h7M11.500 5.500 14 8l-2.500 2.500',
  light:
    'M8 8m-2.500 0a2.500 2.500 0 1 0 5 0 2.500 2.500 0 1 0-5 0M8 1.500v1.500M8 13v1.500M1.500 8H3M13 8h1.500M3.400 3.400l1 1M11.600 11.600l1 1M3.400 12.600l1-1M11.600 4.400l1-1',
  menu: 'M2.500 4.500h11M2.500 8h11M2.500 11.500h11',
  minus: 'M4 8h8',
  more: 'M4 8v.1M8 8v.1M12 8v.1',
  plus: 'M8 3.500v9M3.500 8h9',
  policy: 'M8 2 13 4v4c0 3-2 5-5 6-3-1-5-3-5-6V4z',
  posture: 'M3 3.500h10v7H3zM6 13.500h4M8 10.500v3',
  router:
    'M2.500 9h11v4h-11zM5 11v.1M8 11h3M5.500 6.500a3.500 3.500 0 0 1 5 0M3.700 4.500a6 6 0 0 1 8.600 0',
  search: 'M7 7m-4.500 0a4.500 4.500 0 1 0 9 0 4.500 4.500 0 1 0-9 0M10.300 10.300 13.500 13.500',
  service: 'M2.500 5 8 2l5.500 3v6L8 14l-5.500-3zM2.500 5 8 8l5.500-3M8 8v6',
  session: 'M2.500 3.500h11v9h-11zM2.500 6.500h11M5 9h4',
  sortDown: 'M8 3.500v9M4.500 9 8 12.500 11.500 9',
  sortUp: 'M8 12.500v-9M4.500 7 8 3.500 11.500 7',
  star: 'M8 2.500l1.600 3.500 3.900.4-2.900 2.600.8 3.800L8 10.900l-3.400 1.900.8-3.800L2.500 6.400l3.900-.4z',
  topology:
    'M8 3.500m-1.500 0a1.500 1.500 0 1 0 3 0 1.500 1.500 0 1 0-3 0M3.500 12m-1.500 0a1.500 1.500 0 1 0 3 0 1.500 1.500 0 1 0-3 0M12.500 12m-1.500 0a1.500 1.500 0 1 0 3 0 1.500 1.500 0 1 0-3 0M7.200 4.800 4.300 10.700M8.800 4.800l2.900 5.900M5 12h6',
  trash: 'M3 4.500h10M6.500 4.500v-2h3v2M4.500 4.500l.500 9h6l.500-9',
  up: 'M4 9.500 8 5.500 12 9.500',
  wand: 'M3 13 10 6M11.500 2.500v3M10 4h3M13 8.500v2M12 9.500h2M5.500 3v2M4.500 4h2',
} as const

export type IconName = keyof typeof paths

/** Always beside a text that says the same, so that it is hidden from those who hear the page. */
export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.4"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={paths[name]} />
    </svg>
  )
}

export function Mark({ size = 24 }: { readonly size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" fill="#3350d0" />
      <path d="M15.500 5.500v14.500H7.500z M17.500 10v10h7z" fill="#fff" />
      <path
        d="M5.500 22.500h21c-1.200 2.300-3.300 3.700-5.500 3.700H11c-2.200 0-4.300-1.400-5.500-3.700z"
        fill="#fff"
      />
    </svg>
  )
}
