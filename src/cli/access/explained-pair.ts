import {
  booleanShape,
  listShape,
  nullableShape,
  numberShape,
  objectShape,
  optionalShape,
  type ShapeCheck,
  textShape,
} from '../client/response-shape.ts'

export interface ExplainedRecord {
  readonly id: string
  readonly name: string
}

export interface ExplainedPairRight {
  readonly isGranted: boolean
  readonly isReachable: boolean
  readonly policies:
    | readonly (ExplainedPolicyMatch & {
        readonly checks: readonly ExplainedPostureCheck[] | null
      })[]
    | null
  readonly policiesCount: number | null
  readonly missing: readonly {
    readonly code: string
    readonly message: string
    readonly records: readonly ExplainedRecord[]
  }[]
  /** Optional, because an older controller sends neither `endsAt` nor `nearestPolicy`. */
  readonly endsAt?: string | null
  readonly nearestPolicy?:
    | (ExplainedRecord & {
        readonly identityLacks: readonly string[]
        readonly serviceLacks: readonly string[]
      })
    | null
}

export interface ExplainedPolicyMatch extends ExplainedRecord {
  readonly semantic: string
  readonly identityRoles?: readonly string[]
  readonly serviceRoles?: readonly string[]
  readonly edgeRouterRoles?: readonly string[]
}

export interface ExplainedPostureCheck extends ExplainedRecord {
  readonly typeId: string
  readonly state: 'passes' | 'fails' | 'unknown'
  readonly passing: number
  readonly failing: number
}

/**
 * The printed fields of a row of `GET /access/explain`. A field is null if the caller may not see
 * it. `endsAt` is null if the right does not end, `nearestPolicy` also if there is no such policy.
 */
export interface ExplainedPair {
  readonly identity: ExplainedRecord
  readonly service: ExplainedRecord
  readonly dial: ExplainedPairRight
  readonly bind: ExplainedPairRight
  readonly routers: {
    readonly commonCount: number
    readonly common: readonly (ExplainedRecord & { readonly isOnline: boolean })[]
    readonly identityPolicies: readonly ExplainedPolicyMatch[] | null
    readonly servicePolicies: readonly ExplainedPolicyMatch[] | null
  } | null
  readonly terminators: {
    readonly totalCount: number
    readonly items: readonly {
      readonly address: string
      readonly router: ExplainedRecord | null
      readonly isOnline: boolean
    }[]
  } | null
  /** `notIntercepted` is optional in each config, because an older controller does not send it. */
  readonly configs:
    | readonly (ExplainedRecord & { readonly notIntercepted?: readonly string[] })[]
    | null
  readonly withheld: readonly string[]
}

const named = objectShape<ExplainedRecord>({ id: textShape, name: textShape })
const texts = listShape(textShape)
const linkMembers = {
  id: textShape,
  name: textShape,
  semantic: textShape,
  identityRoles: optionalShape(texts),
  serviceRoles: optionalShape(texts),
  edgeRouterRoles: optionalShape(texts),
}
const check = objectShape<ExplainedPostureCheck>({
  id: textShape,
  name: textShape,
  typeId: textShape,
  // Any string is valid, because a newer controller may send a state that this version does not
  // know; the command prints it as received.
  state: textShape as ShapeCheck<ExplainedPostureCheck['state']>,
  passing: numberShape,
  failing: numberShape,
})
const right = objectShape<ExplainedPairRight>({
  isGranted: booleanShape,
  isReachable: booleanShape,
  policies: nullableShape(
    listShape(objectShape({ ...linkMembers, checks: nullableShape(listShape(check)) })),
  ),
  policiesCount: nullableShape(numberShape),
  missing: listShape(
    objectShape({ code: textShape, message: textShape, records: listShape(named) }),
  ),
  endsAt: optionalShape(nullableShape(textShape)),
  nearestPolicy: optionalShape(
    nullableShape(
      objectShape({
        id: textShape,
        name: textShape,
        identityLacks: texts,
        serviceLacks: texts,
      }),
    ),
  ),
})
const links = nullableShape(listShape(objectShape<ExplainedPolicyMatch>(linkMembers)))

export const explainedPairsShape = listShape(
  objectShape<ExplainedPair>({
    identity: named,
    service: named,
    dial: right,
    bind: right,
    routers: nullableShape(
      objectShape({
        commonCount: numberShape,
        common: listShape(objectShape({ id: textShape, name: textShape, isOnline: booleanShape })),
        identityPolicies: links,
        servicePolicies: links,
      }),
    ),
    terminators: nullableShape(
      objectShape({
        totalCount: numberShape,
        items: listShape(
          objectShape({ address: textShape, router: nullableShape(named), isOnline: booleanShape }),
        ),
      }),
    ),
    configs: nullableShape(
      listShape(
        objectShape({ id: textShape, name: textShape, notIntercepted: optionalShape(texts) }),
      ),
    ),
    withheld: texts,
  }),
)
