/** The CA certificates of the network itself, as PEM strings with any number of certificates. */
export interface NetworkAuthorities {
  /** CA certificates that are the trust anchors of the network; at least one. */
  anchorsPem(): string
  /**
   * The authorities below the trust anchors that sign for the network; '' until this controller
   * knows any.
   */
  intermediatesPem(): string
}
