import {
  flagShape,
  listOf,
  nullable,
  numberShape,
  objectOf,
  optional,
  type Shape,
  textShape,
} from '../client/answer-shape.ts'

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

const named = objectOf<NamedRecord>({ id: textShape, name: textShape })
const texts = listOf(textShape)
const linkMembers = {
  id: textShape,
  name: textShape,
  semantic: textShape,
  identityRoles: optional(texts),
  serviceRoles: optional(texts),
  edgeRouterRoles: optional(texts),
}
const check = objectOf<ExplainedCheck>({
  id: textShape,
  name: textShape,
  typeId: textShape,
  // A later state is shown as it is called.
  state: textShape as Shape<ExplainedCheck['state']>,
  passing: numberShape,
  failing: numberShape,
})
const right = objectOf<RightOfPair>({
  isGranted: flagShape,
  isReachable: flagShape,
  policies: nullable(listOf(objectOf({ ...linkMembers, checks: nullable(listOf(check)) }))),
  policiesCount: nullable(numberShape),
  missing: listOf(objectOf({ code: textShape, message: textShape, records: listOf(named) })),
})
const links = nullable(listOf(objectOf<ExplainedLink>(linkMembers)))

export const pairsShape = listOf(
  objectOf<ExplainedPair>({
    identity: named,
    service: named,
    dial: right,
    bind: right,
    routers: nullable(
      objectOf({
        commonCount: numberShape,
        common: listOf(objectOf({ id: textShape, name: textShape, isOnline: flagShape })),
        identityPolicies: links,
        servicePolicies: links,
      }),
    ),
    terminators: nullable(
      objectOf({
        totalCount: numberShape,
        items: listOf(
          objectOf({ address: textShape, router: nullable(named), isOnline: flagShape }),
        ),
      }),
    ),
    withheld: texts,
  }),
)
