/**
 * Parts of a circuit's set-up that a trace can log, with the names and bits of OpenZiti routers.
 */
export const traceChannels = { selectPath: 1, establishPath: 2 } as const

/** Maximum duration of a trace; a caller that needs more time must start another trace. */
export const traceMsMax = 24 * 60 * 60_000

export interface IdentityTrace {
  /** Id that log lines of the trace contain. */
  readonly traceId: string
  /** The sum of the values of {@link traceChannels} that are traced. */
  readonly channels: number
}

/** Identities whose circuits all controllers and routers log step by step for a limited time. */
export interface IdentityTraces {
  /** The trace of an identity; null if the identity is not traced. */
  of(identityId: string): IdentityTrace | null
  /**
   * Starts a trace, which replaces every other trace of the identity. If there are too many traces,
   * the oldest one that this controller started ends.
   * @param untilMs UTC ms by the clock of this controller. The trace also ends when this controller
   * stops.
   * @returns false when the trace cannot be sent to the other controllers.
   */
  begin(identityId: string, trace: IdentityTrace & { readonly untilMs: number }): boolean
  /** Ends all traces of the identity, on every controller. */
  end(identityId: string): void
}
