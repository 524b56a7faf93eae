import type { NamedSchema } from '../../entities/operations.ts'
import { nullableSchema } from '../../entities/nested.ts'
import {
  arraySchema,
  dateTime,
  entityRef,
  flag,
  nullableEntityRef,
  text,
  wholeObject,
} from '../../entities/shapes.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { integer, texts } from '../schemas/envelope.ts'
import { accessObstacleCodes } from './missing-pieces.ts'

const count = { type: ['integer', 'null'] } as const

/** Schema of a reference to a record, with additional members. */
const refWith = (more: JsonObject, required = Object.keys(more)): JsonObject => ({
  type: 'object',
  properties: { ...(entityRef['properties'] as JsonObject), ...more },
  required: [...(entityRef['required'] as readonly string[]), ...required],
})
/** Schema of a value that is null if the caller may not read records of that kind. */
const withheldOr = nullableSchema

/**
 * For each list of roles in a policy: the roles that select the identity, the service or the edge
 * router of this pair.
 */
const matched = { identityRoles: texts, serviceRoles: texts, edgeRouterRoles: texts } as const

const check = refWith({
  typeId: text,
  state: { type: 'string', enum: ['passes', 'fails', 'unknown'] },
  passing: integer,
  failing: integer,
})

const right = wholeObject(
  {
    isGranted: flag,
    isReachable: flag,
    /**
     * Time at which the identity loses the right, because the last policy that grants it ends.
     */
    endsAt: { anyOf: [dateTime, { type: 'null' }] },
    policiesCount: count,
    policies: withheldOr(
      arraySchema(
        refWith(
          {
            semantic: text,
            ...matched,
            checks: withheldOr(arraySchema(check)),
            checksCount: count,
          },
          ['semantic', 'checks', 'checksCount'],
        ),
      ),
    ),
    missing: arraySchema(
      wholeObject({
        code: { type: 'string', enum: accessObstacleCodes },
        message: text,
        records: arraySchema(entityRef),
      }),
    ),
    /**
     * If no policy grants the right: the policy that would grant the right with the fewest
     * additional role attributes.
     */
    nearestPolicy: withheldOr(refWith({ identityLacks: texts, serviceLacks: texts })),
  },
  // Optional members, because an older controller does not send them.
  ['nearestPolicy', 'endsAt'],
)

const routerPolicies = withheldOr(
  arraySchema(refWith({ semantic: text, ...matched }, ['semantic'])),
)

const routers = wholeObject({
  identityCount: integer,
  serviceCount: integer,
  commonCount: integer,
  onlineCount: integer,
  common: arraySchema(refWith({ isOnline: flag })),
  identityPolicies: routerPolicies,
  servicePolicies: routerPolicies,
})

const terminators = wholeObject({
  totalCount: integer,
  onlineCount: integer,
  items: arraySchema(
    refWith({ address: text, binding: text, router: nullableEntityRef, isOnline: flag }),
  ),
})

const sessions = wholeObject({
  totalCount: integer,
  items: arraySchema(
    wholeObject({
      id: text,
      createdAt: dateTime,
      passesForDial: { type: ['boolean', 'null'] },
      passesForBind: { type: ['boolean', 'null'] },
    }),
  ),
})

/** The explanation for one identity and one service. */
export const accessExplanationSchema: NamedSchema = {
  name: 'accessExplained',
  schema: wholeObject({
    identity: entityRef,
    service: entityRef,
    identityState: wholeObject({
      isDisabled: flag,
      disabledUntil: { anyOf: [dateTime, { type: 'null' }] },
      isAdmin: flag,
      canLogIn: flag,
      hasOutstandingEnrollment: flag,
      authPolicy: nullableEntityRef,
      hasApiSession: flag,
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
            type: nullableEntityRef,
            source: { type: 'string', enum: ['service', 'identity'] },
            notIntercepted: texts,
          },
          ['type', 'source'],
        ),
      ),
    ),
    withheld: texts,
  }),
}
