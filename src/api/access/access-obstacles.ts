import type { ServicePolicy } from '../../entities/kinds/service-policy.ts'
import type { Service } from '../../entities/kinds/service.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import type { RecordOf } from '../../entities/kind-records.ts'
import type { Permission } from '../../auth/principal/permissions.ts'
import type { LimitedList } from '../../fsm/access/explanation.ts'
import type { ExpiredGrants } from '../../fsm/access/expired-grants.ts'
import type { LogInAbility } from '../../fsm/access/log-in-ability.ts'
import type { DialBind } from '../../ports/state-view.ts'
import { rfc3339Text } from '../http/responses/envelope.ts'

/** One obstacle between an identity and a service. */
export interface AccessObstacle {
  readonly code: MissingCode
  readonly message: string
  /** Kind of the records in `ids`. */
  readonly kind: 'identity' | 'service' | 'servicePolicy' | 'postureCheck' | 'edgeRouter'
  /** The records that the message is about, at most `namedMax`; empty if it is about none. */
  readonly ids: readonly string[]
}

/** Obstacle codes, in the order in which a dial or a bind meets the obstacles. */
export const accessObstacleCodes = [
  'IDENTITY_DISABLED',
  'NO_LOG_IN',
  'POLICY_ENDED',
  'ROLE_ATTRIBUTE_ENDED',
  'NO_POLICY_OF_IDENTITY',
  'NO_POLICY_OF_SERVICE',
  'NO_SHARED_POLICY',
  'POSTURE_FAILS',
  'NO_ROUTER_OF_IDENTITY',
  'NO_ROUTER_OF_SERVICE',
  'NO_COMMON_ROUTER',
  'NO_ROUTER_ONLINE',
  'NO_EDGE_LISTENER',
  'NO_TERMINATOR',
  'NO_TERMINATOR_ONLINE',
] as const
type MissingCode = (typeof accessObstacleCodes)[number]

/** Facts about an identity-service pair, from which its obstacles are derived. */
export interface AccessObstacleInputs {
  readonly type: DialBind
  readonly identity: Identity
  readonly service: Service
  readonly isDisabled: boolean
  readonly logIn: LogInAbility
  readonly isEnrolling: boolean
  readonly hasApiSession: boolean
  readonly isGranted: boolean
  readonly ended: ExpiredGrants
  readonly ofIdentity: LimitedList<ServicePolicy>
  readonly ofService: LimitedList<ServicePolicy>
  /** Ids of the failing posture checks; empty if some API session passes, or if there is none. */
  readonly failingChecks: readonly string[]
  readonly identityRouterCount: number
  readonly serviceRouterCount: number
  readonly commonRouters: LimitedList<RecordOf<'edgeRouter'>>
  /** Ids of the routers, among the common routers that were checked, that are online. */
  readonly onlineRouterIds: readonly string[]
  /**
   * Whether one of these online routers has an edge listener, or is the router to which the
   * identity belongs.
   */
  readonly isAnyRouterReachable: boolean
  readonly terminatorCount: number
  readonly isAnyTerminatorOnline: boolean
}

/** Maximum records that one obstacle names. */
const namedMax = 10

/**
 * Returns the obstacles in the order in which a dial or bind meets them; [] if there are none.
 * @param may returns whether the caller has a permission. Without the permission to read a kind of
 * record, no message reveals how many records of this kind exist.
 */
export function accessObstacles(
  facts: AccessObstacleInputs,
  may: (permission: Permission) => boolean,
): readonly AccessObstacle[] {
  return [
    ...ofIdentity(facts),
    ...ofPolicies(facts, may('service-policy.read')),
    ...ofPosture(facts),
    ...ofRouters(facts, may('router.read')),
    ...(facts.type === 'Dial' ? ofTerminators(facts, may('terminator.read')) : []),
  ]
}

function ofIdentity(facts: AccessObstacleInputs): AccessObstacle[] {
  const { identity, isDisabled, logIn, isEnrolling, hasApiSession } = facts
  const about = { kind: 'identity', ids: [identity.id] } as const
  const pieces: AccessObstacle[] = []
  if (isDisabled) {
    const message = 'The identity is disabled'
    pieces.push({ ...about, code: 'IDENTITY_DISABLED', message })
  }
  // A missing authenticator is no obstacle for an identity that is already logged in, because the
  // identity does not need it again in this session.
  if (logIn !== 'some' && !hasApiSession) {
    const what =
      logIn === 'notAllowed'
        ? 'The auth policy of the identity allows none of its authenticators'
        : 'The identity has no authenticator'
    const message = isEnrolling ? `${what}; an enrollment is outstanding` : what
    pieces.push({ ...about, code: 'NO_LOG_IN', message })
  }
  return pieces
}

function ofPolicies(facts: AccessObstacleInputs, mayCount: boolean): AccessObstacle[] {
  const { type, identity, service, isGranted, ofIdentity: one, ofService: other } = facts
  if (isGranted) return []
  const ended = ofEnds(facts, mayCount)
  if (ended.length > 0) return ended
  const pieces: AccessObstacle[] = []
  if (one.total === 0) {
    pieces.push({
      code: 'NO_POLICY_OF_IDENTITY',
      message: `No ${type} policy includes the identity${attributesText(identity)}`,
      kind: 'identity',
      ids: [identity.id],
    })
  }
  if (other.total === 0) {
    pieces.push({
      code: 'NO_POLICY_OF_SERVICE',
      message: `No ${type} policy includes the service${attributesText(service)}`,
      kind: 'service',
      ids: [service.id],
    })
  }
  if (pieces.length > 0) return pieces
  const counted = mayCount
    ? `${countText(one.total, `${type} policy includes`, `${type} policies include`)} the identity and ${countText(other.total, 'includes', 'include')} the service, but none includes both`
    : `No ${type} policy includes both the identity and the service`
  const ids = [...one.first.slice(0, namedMax / 2), ...other.first.slice(0, namedMax / 2)]
  return [
    {
      code: 'NO_SHARED_POLICY',
      message: counted,
      kind: 'servicePolicy',
      ids: ids.map(({ id }) => id),
    },
  ]
}

/**
 * Obstacles that arise because temporary access has expired: the policy, or a role attribute that
 * the policy selects.
 */
function ofEnds(
  { type, identity, ended }: AccessObstacleInputs,
  mayReadPolicies: boolean,
): AccessObstacle[] {
  const pieces: AccessObstacle[] = []
  const [policy] = ended.policies
  if (policy !== undefined) {
    const endMs = Math.max(...ended.policies.map(({ expiresAt }) => expiresAt ?? 0))
    const ids = ended.policies.slice(0, namedMax).map(({ id }) => id)
    const at = mayReadPolicies ? ` at ${rfc3339Text(endMs)}` : ''
    const message = `The ${type} policy that includes both has ended${at}`
    pieces.push({ code: 'POLICY_ENDED', message, kind: 'servicePolicy', ids })
  }
  if (ended.attributes.length > 0) {
    const ends = ended.attributes
      .slice(0, namedMax)
      .map(({ attribute, atMs }) => `#${attribute} at ${rfc3339Text(atMs)}`)
    pieces.push({
      code: 'ROLE_ATTRIBUTE_ENDED',
      message: `Role attributes of the identity ended: ${ends.join(', ')}`,
      kind: 'identity',
      ids: [identity.id],
    })
  }
  return pieces
}

function ofPosture({ isGranted, type, failingChecks }: AccessObstacleInputs): AccessObstacle[] {
  if (!isGranted || failingChecks.length === 0) return []
  return [
    {
      code: 'POSTURE_FAILS',
      message: `None of the newest API sessions of the identity passes the posture checks of a ${type} policy`,
      kind: 'postureCheck',
      ids: failingChecks.slice(0, namedMax),
    },
  ]
}

function ofRouters(facts: AccessObstacleInputs, mayCount: boolean): AccessObstacle[] {
  const { identity, service, identityRouterCount: one, serviceRouterCount: other } = facts
  const pieces: AccessObstacle[] = []
  if (one === 0) {
    pieces.push({
      code: 'NO_ROUTER_OF_IDENTITY',
      message: `No edge router policy gives the identity an edge router${attributesText(identity)}`,
      kind: 'identity',
      ids: [identity.id],
    })
  }
  if (other === 0) {
    pieces.push({
      code: 'NO_ROUTER_OF_SERVICE',
      message: `No service edge router policy gives the service an edge router${attributesText(service)}`,
      kind: 'service',
      ids: [service.id],
    })
  }
  if (pieces.length > 0) return pieces
  const { total, first } = facts.commonRouters
  if (total === 0) {
    const counts = mayCount ? ` (${one} of the identity, ${other} of the service)` : ''
    const message = `The identity and the service have no edge router in common${counts}`
    return [{ code: 'NO_COMMON_ROUTER', message, kind: 'edgeRouter', ids: [] }]
  }
  if (facts.onlineRouterIds.length > 0) {
    if (facts.isAnyRouterReachable) return []
    const ids = facts.onlineRouterIds.slice(0, namedMax)
    return [{ code: 'NO_EDGE_LISTENER', message: noEdgeListener, kind: 'edgeRouter', ids }]
  }
  return [
    {
      code: 'NO_ROUTER_ONLINE',
      message: mayCount
        ? `No edge router that they have in common is online (0 of ${total})`
        : 'No edge router that they have in common is online',
      kind: 'edgeRouter',
      ids: first.slice(0, namedMax).map(({ id }) => id),
    },
  ]
}

const noEdgeListener =
  'No edge router that they have in common and that is online has an edge listener, so clients cannot connect to it'

function ofTerminators(
  { service, terminatorCount, isAnyTerminatorOnline }: AccessObstacleInputs,
  mayCount: boolean,
): AccessObstacle[] {
  const about = { kind: 'service', ids: [service.id] } as const
  if (terminatorCount === 0) {
    const message = 'The service has no terminator: nothing hosts it'
    return [{ ...about, code: 'NO_TERMINATOR', message }]
  }
  if (isAnyTerminatorOnline) return []
  const message = mayCount
    ? `No terminator of the service is at a router that is online (0 of ${terminatorCount})`
    : 'No terminator of the service is at a router that is online'
  return [{ ...about, code: 'NO_TERMINATOR_ONLINE', message }]
}

function countText(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`
}

/**
 * Describes the role attributes of a record. A record without attributes can be selected only by
 * `#all` or by its id.
 */
function attributesText({ roleAttributes: attributes }: Identity | Service): string {
  if (attributes.length === 0) return ', which has no role attribute'
  const shown = attributes.slice(0, namedMax).map((one) => `#${one}`)
  const more = attributes.length > namedMax ? ', …' : ''
  return ` (its role attributes: ${shown.join(', ')}${more})`
}
