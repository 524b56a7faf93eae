/** How long a client waits for answers, and how long it retries. */
export interface ClientWaits {
  /** After this time without an answer, the client tries the next member. */
  readonly answerMs: number
  /** Minimum wait for the answer of the last member to try. */
  readonly lastAnswerMs: number
  /** Wait for the answer to a write that must not be sent twice, in place of `answerMs`. */
  readonly onceOnlyMs: number
  /** How long the client retries while members refuse temporarily; 0: it does not retry. */
  readonly patienceMs: number
  readonly pauseMs: number
}

/** Waits of commands and of the host tunnel. */
export const commandWaits = {
  answerMs: 15_000,
  lastAnswerMs: 0,
  onceOnlyMs: 15_000,
  patienceMs: 20_000,
  pauseMs: 250,
} as const satisfies ClientWaits

/** Waits of the console, whose user sees a failure and can retry. */
export const pageWaits = {
  answerMs: 2_000,
  lastAnswerMs: 20_000,
  onceOnlyMs: 10_000,
  patienceMs: 0,
  pauseMs: 0,
} as const satisfies ClientWaits

/** For this time after a failure, a client tries the failed member last. */
export const FAILED_MEMBER_AVOIDANCE_MS = 15_000
