/** A row of `GET /access/explain`, as far as it is printed; null: the caller may not see it. */

export interface NamedRecord {
  readonly id: string
  readonly name: string
}

export interface RightOfPair {
  readonly isGranted: boolean
  readonly isReachable: boolean
  readonly policies:
    | readonly (ExplainedLink & { readonly checks: readonly ExplainedCheck[] | null })[]
    | null
  readonly policiesCount: number | null
  readonly missing: readonly {
    readonly code: string
    readonly message: string
    readonly records: readonly NamedRecord[]
  }[]
}

export interface ExplainedLink extends NamedRecord {
  readonly semantic: string
  readonly identityRoles?: readonly string[]
  readonly serviceRoles?: readonly string[]
  readonly edgeRouterRoles?: readonly string[]
}

export interface ExplainedCheck extends NamedRecord {
  readonly typeId: string
  readonly state: 'passes' | 'fails' | 'unknown'
  readonly passing: number
  readonly failing: number
}

export interface ExplainedPair {
  readonly identity: NamedRecord
  readonly service: NamedRecord
  readonly dial: RightOfPair
  readonly bind: RightOfPair
  readonly routers: {
    readonly commonCount: number
    readonly common: readonly (NamedRecord & { readonly isOnline: boolean })[]
    readonly identityPolicies: readonly ExplainedLink[] | null
    readonly servicePolicies: readonly ExplainedLink[] | null
  } | null
  readonly terminators: {
    readonly totalCount: number
    readonly items: readonly {
      readonly address: string
      readonly router: NamedRecord | null
      readonly isOnline: boolean
    }[]
  } | null
  readonly withheld: readonly string[]
}
