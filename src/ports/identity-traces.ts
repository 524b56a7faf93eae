/** Parts of a trace, by the names and bits that routers of the API family know. */
export const traceChannels = { selectPath: 1, establishPath: 2 } as const

/** Maximum duration of a trace; a caller that needs more starts another one. */
export const traceMsMax = 24 * 60 * 60_000

export interface IdentityTrace {
  /** Lines of the logs have it. */
  readonly traceId: string
  /** The sum of {@link traceChannels}. */
  readonly channels: number
}

/** Identities whose circuits all controllers and routers log step by step, for a time. */
export interface IdentityTraces {
  /** null when it is not traced, or not any more. */
  of(identityId: string): IdentityTrace | null
  /**
   * Replaces every other trace of the identity. If there are too many traces, the oldest of this
   * controller ends.
   * @param untilMs UTC ms by the clock of this controller. The trace also ends when this controller
   * stops.
   * @returns false when it cannot be sent to the other controllers.
   */
  begin(identityId: string, trace: IdentityTrace & { readonly untilMs: number }): boolean
  /** Ends all traces of it, wherever they were begun. */
  end(identityId: string): void
}
