/** Start and end of an identity's disablement, UTC ms. */
export interface Disablement {
  /** Time at which the identity was disabled; null: it is not disabled. */
  readonly disabledAt: number | null
  /** Time at which the disablement expires; null: an administrator must enable the identity. */
  readonly disabledUntil: number | null
}

/**
 * Whether the identity is disabled at `atMs`, UTC ms. The state machine passes log time; checks
 * that come before a proposal pass `proposalNowMs`.
 */
export function isDisabled({ disabledAt, disabledUntil }: Disablement, atMs: number): boolean {
  return disabledAt !== null && (disabledUntil === null || disabledUntil > atMs)
}
