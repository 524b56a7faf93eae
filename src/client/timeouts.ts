/** How long a client waits for responses, and how long it retries. */
export interface ClientTimeouts {
  /** Time without a response after which the client tries the next member. */
  readonly answerMs: number
  /**
   * Time without a response after which the client also sends a read to the next member; 0: the
   * client sends a request to one member at a time.
   */
  readonly hedgeMs: number
  /**
   * Minimum timeout for the last member that is tried and, if `hedgeMs` is above 0, for each read;
   * not used for a request to a given member.
   */
  readonly lastAnswerMs: number
  /** Timeout for a write that must not be sent twice, instead of `answerMs`. */
  readonly onceOnlyMs: number
  /** How long the client retries while members refuse temporarily; 0: no retries. */
  readonly patienceMs: number
  /** Pause before each retry while members refuse temporarily. */
  readonly pauseMs: number
}

/** Timeouts of commands and of the host tunnel. */
export const commandTimeouts = {
  answerMs: 15_000,
  hedgeMs: 0,
  lastAnswerMs: 0,
  onceOnlyMs: 15_000,
  patienceMs: 20_000,
  pauseMs: 250,
} as const satisfies ClientTimeouts

/** Short timeouts for the console, whose user sees a failure and can retry. */
export const consoleTimeouts = {
  answerMs: 2_000,
  hedgeMs: 1_000,
  lastAnswerMs: 20_000,
  onceOnlyMs: 10_000,
  patienceMs: 0,
  pauseMs: 0,
} as const satisfies ClientTimeouts

/**
 * Timeout of the console for data that each controller has about itself, and that the console
 * requests from all controllers: data of a controller that does not respond is left out.
 */
export const OWN_DATA_TIMEOUT_MS = 2_000

/** For this long after a failure, a client tries the failed member last. */
export const FAILED_MEMBER_AVOIDANCE_MS = 15_000
