/** Since when an identity is disabled, and until when: UTC ms. */
export interface Disablement {
  /** null: it is not disabled. */
  readonly disabledAt: number | null
  /** null: until it is enabled. */
  readonly disabledUntil: number | null
}

/**
 * Whether it is at that time, UTC ms: by the log where apply asks, by the clock where a request
 * does.
 */
export function isDisabled({ disabledAt, disabledUntil }: Disablement, atMs: number): boolean {
  return disabledAt !== null && (disabledUntil === null || disabledUntil > atMs)
}
