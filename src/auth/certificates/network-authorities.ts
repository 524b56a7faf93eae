/** The CA certificates of the network itself, as PEM texts of any number of certificates. */
export interface NetworkAuthorities {
  /** CA certificates that verify everything of the network; at least one. */
  anchorsPem(): string
  /** The authorities below them that sign for the network; '' while none is known here. */
  intermediatesPem(): string
}
