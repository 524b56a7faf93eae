/**
 * Codes in a route result for the reason why a router could not dial a terminator: `ErrorType…` of
 * OpenZiti.
 */
export const dialErrorCodes = {
  other: 0,
  invalidTerminator: 1,
  misconfiguredTerminator: 2,
  timedOut: 3,
  refused: 4,
  rejected: 5,
  unknownName: 6,
  portNotAllowed: 7,
  invalidLink: 8,
  outOfResources: 9,
} as const
export type DialErrorCode = (typeof dialErrorCodes)[keyof typeof dialErrorCodes]
