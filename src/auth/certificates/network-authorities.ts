/** The CA certificates of the network itself, as PEM texts with any number of certificates. */
export interface NetworkAuthorities {
  /** CA certificates that are the trust anchors of the network; at least one. */
  anchorsPem(): string
  /** The authorities below them that sign for the network; '' while none is known here. */
  intermediatesPem(): string
}
