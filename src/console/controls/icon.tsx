import { type IconName, iconPaths } from './icon-paths.ts'

/**
 * An icon. It is hidden from screen readers, because a text beside it or the label of its button
 * says the same.
 */
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
      <path d={iconPaths[name]} />
    </svg>
  )
}

export function ConsoleLogo({ size = 24 }: { readonly size?: number }) {
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
