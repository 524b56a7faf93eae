/**
 * Limits for the set-up of external JWT signers, and for log-ins at identity providers through a
 * controller.
 */
export const signerLimits = {
  /**
   * Maximum discoveries and token tests of one administrator in a minute; after that: 429
   * SERVER_TOO_MANY_REQUESTS.
   */
  signerTestsOfOneMax: 30,
  /**
   * Maximum discoveries and token tests of all administrators in a minute, on one controller; after
   * that: 429 SERVER_TOO_MANY_REQUESTS.
   */
  signerTestsMax: 120,
  /**
   * Maximum requests of one source in a minute for log-ins at identity providers; after that: 429
   * SERVER_TOO_MANY_REQUESTS. Each log-in needs two requests.
   */
  providerLogInsOfOneMax: 20,
  /**
   * Maximum requests of all sources in a minute for log-ins at identity providers, on one
   * controller; after that: 429 SERVER_TOO_MANY_REQUESTS.
   */
  providerLogInsMax: 600,
}

export type SignerLimits = Readonly<typeof signerLimits>
