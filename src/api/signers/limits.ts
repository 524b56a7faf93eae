/** Limits for the set-up of external JWT signers. */
export const signerSetUpLimits = {
  /**
   * Maximum discoveries and token tests of one administrator in a minute; after that: 429
   * SERVER_TOO_MANY_REQUESTS.
   */
  signerTestsOfOneMax: 30,
  /** Maximum discoveries and token tests of all administrators in a minute, on one controller. */
  signerTestsMax: 120,
  /**
   * Maximum requests of one address in a minute that log in at a provider; after that: 429
   * SERVER_TOO_MANY_REQUESTS. A log-in takes two of them.
   */
  providerLogInsOfOneMax: 20,
  /** Maximum requests of all addresses in a minute that log in at a provider, on one controller. */
  providerLogInsMax: 600,
}

export type SignerSetUpLimits = Readonly<typeof signerSetUpLimits>
