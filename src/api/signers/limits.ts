/** Limits for the set-up of external JWT signers. */
export const signerSetUpLimits = {
  /**
   * Maximum discoveries and token tests of one administrator in a minute; after that: 429
   * SERVER_TOO_MANY_REQUESTS.
   */
  signerTestsOfOneMax: 30,
  /** Maximum discoveries and token tests of all administrators in a minute, on one controller. */
  signerTestsMax: 120,
}

export type SignerSetUpLimits = Readonly<typeof signerSetUpLimits>
