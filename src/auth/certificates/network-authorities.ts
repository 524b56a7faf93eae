/** The CA certificates of the network itself, as PEM texts of any number of certificates. */
export interface NetworkAuthorities {
  /** What everything of the network is verified against; at least one. */
  anchorsPem(): string
  /** The authorities below them that sign for the network; '' while none is known here. */
  intermediatesPem(): string
}
