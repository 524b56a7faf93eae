/** Parts of a trace, by the names and bits that routers of the API family know. */
export const traceChannels = { selectPath: 1, establishPath: 2 } as const

/** The longest trace; whoever wants a longer one asks again. */
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
   * Replaces every other trace of it; the oldest of this controller ends for one too many.
   * @param untilMs UTC ms by the clock of this controller, whose end ends it too.
   * @returns false when it cannot be told to the others.
   */
  begin(identityId: string, trace: IdentityTrace & { readonly untilMs: number }): boolean
  /** Ends all traces of it, wherever they were begun. */
  end(identityId: string): void
}
