/** How a fault is put right, by entries that every controller applies. */
export type Repair =
  /** Indexes and digests of a table are derived anew from its records. */
  | { readonly kind: 'rebuild'; readonly entity: string }
  /** A reference to what does not exist is taken out of its holder. */
  | {
      readonly kind: 'detach'
      readonly entity: string
      readonly id: string
      readonly field: string
      readonly missingId: string
    }

export interface Finding {
  readonly description: string
  readonly repair: Repair
}

/**
 * A look through all that is derived from the records of one state, a little at a time while it
 * goes on changing.
 */
export interface IntegrityScan {
  /** Findings in the order found, at most as many as are shown. */
  readonly findings: readonly Finding[]
  /** There were more. */
  readonly hasMore: boolean
  /** Does a bounded piece of it. @returns false when all is done. */
  step(): boolean
}
