import type { NamedSchema } from '../../entities/operations.ts'
import { nullableSchema } from '../../entities/nested-schemas.ts'
import {
  arraySchema,
  dateTimeSchema,
  entityRefSchema,
  booleanSchema,
  nullableEntityRefSchema,
  textSchema,
  openObjectSchema,
} from '../../entities/response-schemas.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { integerSchema, textListSchema } from '../schemas/envelope.ts'
import { accessObstacleCodes } from './access-obstacles.ts'

const count = { type: ['integer', 'null'] } as const

/** Schema of a reference to a record, with additional members. */
const refWith = (more: JsonObject, required = Object.keys(more)): JsonObject => ({
  type: 'object',
  properties: { ...(entityRefSchema['properties'] as JsonObject), ...more },
  required: [...(entityRefSchema['required'] as readonly string[]), ...required],
})
/** Schema of a JSON field that is null if the caller may not read the records that it lists. */
const withheldOr = nullableSchema

/**
 * For each list of roles in a policy: the roles that select the identity, the service or the edge
 * router that are explained.
 */
const matched = {
  identityRoles: textListSchema,
  serviceRoles: textListSchema,
  edgeRouterRoles: textListSchema,
} as const

const check = refWith({
  typeId: textSchema,
  state: { type: 'string', enum: ['passes', 'fails', 'unknown'] },
  passing: integerSchema,
  failing: integerSchema,
})

const right = openObjectSchema(
  {
    isGranted: booleanSchema,
    isReachable: booleanSchema,
    /**
     * Time at which the last granting policy stops granting the right, because the policy or a role
     * attribute of the identity expires; null: never, or no policy grants it.
     */
    endsAt: { anyOf: [dateTimeSchema, { type: 'null' }] },
    policiesCount: count,
    policies: withheldOr(
      arraySchema(
        refWith(
          {
            semantic: textSchema,
            ...matched,
            checks: withheldOr(arraySchema(check)),
            checksCount: count,
          },
          ['semantic', 'checks', 'checksCount'],
        ),
      ),
    ),
    missing: arraySchema(
      openObjectSchema({
        code: { type: 'string', enum: accessObstacleCodes },
        message: textSchema,
        records: arraySchema(entityRefSchema),
      }),
    ),
    /**
     * If no policy grants the right: the policy for which identity and service lack the fewest role
     * attributes.
     */
    nearestPolicy: withheldOr(
      refWith({ identityLacks: textListSchema, serviceLacks: textListSchema }),
    ),
  },
  // These members are optional, because an older controller does not send them.
  ['nearestPolicy', 'endsAt'],
)

const routerPolicies = withheldOr(
  arraySchema(refWith({ semantic: textSchema, ...matched }, ['semantic'])),
)

const routers = openObjectSchema({
  identityCount: integerSchema,
  serviceCount: integerSchema,
  commonCount: integerSchema,
  onlineCount: integerSchema,
  common: arraySchema(refWith({ isOnline: booleanSchema, isVerified: booleanSchema })),
  identityPolicies: routerPolicies,
  servicePolicies: routerPolicies,
})

const terminators = openObjectSchema({
  totalCount: integerSchema,
  onlineCount: integerSchema,
  items: arraySchema(
    refWith({
      address: textSchema,
      binding: textSchema,
      router: nullableEntityRefSchema,
      isOnline: booleanSchema,
    }),
  ),
})

const sessions = openObjectSchema({
  totalCount: integerSchema,
  items: arraySchema(
    openObjectSchema({
      id: textSchema,
      createdAt: dateTimeSchema,
      passesForDial: { type: ['boolean', 'null'] },
      passesForBind: { type: ['boolean', 'null'] },
    }),
  ),
})

/** The explanation for one identity and one service. */
export const accessExplanationSchema: NamedSchema = {
  name: 'accessExplained',
  schema: openObjectSchema({
    identity: entityRefSchema,
    service: entityRefSchema,
    identityState: openObjectSchema({
      isDisabled: booleanSchema,
      disabledUntil: { anyOf: [dateTimeSchema, { type: 'null' }] },
      isAdmin: booleanSchema,
      canLogIn: booleanSchema,
      hasOutstandingEnrollment: booleanSchema,
      authPolicy: nullableEntityRefSchema,
      hasApiSession: booleanSchema,
    }),
    dial: right,
    bind: right,
    routers: withheldOr(routers),
    terminators: withheldOr(terminators),
    sessions: withheldOr(sessions),
    configs: withheldOr(
      arraySchema(
        // `notIntercepted` is optional, because an older controller does not send it.
        refWith(
          {
            type: nullableEntityRefSchema,
            source: { type: 'string', enum: ['service', 'identity'] },
            notIntercepted: textListSchema,
          },
          ['type', 'source'],
        ),
      ),
    ),
    withheld: textListSchema,
  }),
}
