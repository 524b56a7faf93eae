import { fromBinary } from '@bufbuild/protobuf'
import {
  type HostedTerminatorCreate,
  HostedTerminatorCreateSchema,
  HostedTerminatorsRemoveSchema,
  HostedTerminatorUpdateSchema,
} from '../../../proto/gen/command_pb.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import type { Router } from '../../entities/kinds/router.ts'
import type { Service } from '../../entities/kinds/service.ts'
import { terminator, type Terminator } from '../../entities/kinds/terminator.ts'
import {
  terminatorCostMax,
  precedenceNames,
  terminatorBounds,
} from '../../entities/parts/terminator-fields.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { isGrantedByAnyPolicy } from '../access/policy-posture-checks.ts'
import { commonRouters } from '../access/routers.ts'
import { isDisabled } from '../../lib/is-disabled.ts'
import { linkingPolicies } from '../records/roles.ts'
import type { State } from '../records/state.ts'
import type { CommandContext } from '../apply/command-context.ts'
import {
  acceptedOutcome,
  fieldFaultOutcome,
  notFoundOutcome,
  refusedOutcome,
} from '../apply/outcome.ts'
import { createWriteConsequences, removeWithReferences } from '../apply/references.ts'

export const hostedTerminatorLimits = {
  /**
   * Maximum terminators at one router; beyond that, the router's request for another hosted
   * terminator is refused.
   */
  terminatorsPerRouterMax: 65_536,
  /**
   * Maximum terminators that one identity hosts, at all routers together; a request for a further
   * one is refused.
   */
  terminatorsPerIdentityMax: 4096,
  /**
   * Maximum number of peer data keys that a host sends to dialing clients; a router's request with
   * more is refused.
   */
  peerDataKeysMax: 32,
  /** Maximum characters of one peer data value; a router's request with a longer one is refused. */
  peerDataCharactersMax: 4096,
  /**
   * Maximum characters of the terminator id that a router sends; a request with a longer one is
   * refused.
   */
  idCharactersMax: 128,
  /**
   * Maximum characters of the instance id of a hosted terminator; a request with a longer one is
   * refused.
   */
  instanceIdCharactersMax: 512,
} as const
const limits = hostedTerminatorLimits

/** Feature level from which all hosts of one service instance must have the same identity. */
const ONE_IDENTITY_LEVEL = 2
/**
 * Feature level from which a router's request is refused if it removes a terminator at another
 * router.
 */
const OWN_TERMINATORS_LEVEL = 2

/** Feature level from which the tunnel of a router can host services. */
const TUNNELS_LEVEL = 2

/**
 * Creates a terminator for a service that is hosted at a router. The service session determines the
 * host. The session ends when the host loses the bind permission, so a router can host only
 * services that one of its clients may host. The router's tunnel has no session; instead, the
 * router's identity must have the bind permission. A repeated request, for example after a lost
 * response, succeeds.
 */
export function createHostedTerminator(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const message = fromBinary(HostedTerminatorCreateSchema, payload)
  const router = actingRouter(state, context)
  if (router === undefined) return refusedOutcome('UNAUTHORIZED')
  const isOfTunnel = message.serviceId !== '' && state.featureLevel >= TUNNELS_LEVEL
  const hosting = isOfTunnel
    ? hostingOfTunnel(state, router, message.serviceId, context)
    : hostingOfSession(state, router, message.sessionId)
  if (hosting === null) return refusedOutcome('INVALID_AUTH')
  const { identity, service, binding } = hosting
  // @guard hosting-at-a-router--policy
  if (!commonRouters(state, identity, service).has(router.id)) {
    return refusedOutcome('NO_EDGE_ROUTERS_AVAILABLE')
  }
  const known = state.get('terminator', message.id)
  if (known !== undefined) {
    const isSame =
      known.isSystem &&
      known.routerId === router.id &&
      known.hostId === identity.id &&
      known.serviceId === service.id &&
      known.address === message.address &&
      known.binding === binding
    return isSame
      ? acceptedOutcome(known.id)
      : fieldFaultOutcome({ field: 'id', reason: 'id must be unique' })
  }
  return (
    boundsFault(message) ??
    instanceFault(state, { serviceId: service.id, hostId: identity.id }, message) ??
    crowdFault(state, router.id, identity.id) ??
    insert(state, message, hosting, context)
  )
}

interface Hosting {
  readonly router: Router
  readonly identity: Identity
  readonly service: Service
  /**
   * The way in which the router reaches the host. `edge`: the host is a client of the router;
   * `tunnel`: the host is the router's own tunnel.
   */
  readonly binding: 'edge' | 'tunnel'
}

function hostingOfSession(state: State, router: Router, sessionId: string): Hosting | null {
  const session = state.get('session', sessionId)
  const identity = state.get('identity', session?.identityId ?? '')
  const service = state.get('service', session?.serviceId ?? '')
  // @guard hosting-at-a-router--type
  if (session?.type !== 'Bind' || identity === undefined || service === undefined) return null
  return { router, identity, service, binding: 'edge' }
}

/**
 * The host of a terminator that a router's tunnel creates. A router reports no posture, so its
 * tunnel cannot host under a policy with posture checks.
 */
function hostingOfTunnel(
  state: State,
  router: Router,
  serviceId: string,
  { logTimeMs }: CommandContext,
): Hosting | null {
  const identity = state.get('identity', router.id)
  const service = state.get('service', serviceId)
  // @guard hosting-at-a-router--tunnel
  if (!router.isTunnelerEnabled || identity?.typeId !== 'Router' || service === undefined) {
    return null
  }
  // @guard hosting-at-a-router--tunnel-disabled
  if (isDisabled(identity, logTimeMs)) return null
  const granting = linkingPolicies(state, identity, service).filter(({ type }) => type === 'Bind')
  // @guard hosting-at-a-router--tunnel-posture
  if (!isGrantedByAnyPolicy(state, granting, () => false)) return null
  return { router, identity, service, binding: 'tunnel' }
}

function insert(
  state: State,
  message: HostedTerminatorCreate,
  { router, identity, service, binding }: Hosting,
  context: CommandContext,
): Outcome {
  const { id, address, cost, precedence, instanceId, instanceSecret, peerData } = message
  const { defaultHostingCost, defaultHostingPrecedence } = identity
  context.touched.push({ action: 'create', entity: 'terminator', id, fields: [] })
  createWriteConsequences(state, context).put('terminator', id, {
    serviceId: service.id,
    routerId: router.id,
    hostId: identity.id,
    binding,
    address,
    instanceId,
    instanceSecret,
    peerData,
    isSystem: true,
    // If the client gives no cost, the identity's cost for the service is used, or else the
    // identity's default cost.
    cost: cost > 0 ? cost : (identity.serviceHostingCosts[service.id] ?? defaultHostingCost),
    precedence:
      precedence !== 'default'
        ? precedence
        : (identity.serviceHostingPrecedences[service.id] ?? defaultHostingPrecedence),
  })
  return acceptedOutcome(id)
}

/** Changes cost and precedence of a terminator at the acting router. */
export function updateHostedTerminator(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const { id, cost, precedence } = fromBinary(HostedTerminatorUpdateSchema, payload)
  const router = actingRouter(state, context)
  if (router === undefined) return refusedOutcome('UNAUTHORIZED')
  const known = state.get('terminator', id)
  if (known === undefined || !isHostedAt(known, router.id)) return notFoundOutcome('terminator', id)
  if (cost !== undefined && cost > terminatorCostMax)
    return fieldFaultOutcome({ field: 'cost', reason: 'too large' })
  if (precedence !== undefined && !isPrecedence(precedence)) {
    return fieldFaultOutcome({ field: 'precedence', reason: 'no precedence of that name' })
  }
  const fields = {
    ...(cost === undefined ? {} : { cost }),
    ...(precedence === undefined ? {} : { precedence }),
  }
  context.touched.push({ action: 'patch', entity: 'terminator', id, fields: Object.keys(fields) })
  createWriteConsequences(state, context).put('terminator', id, { ...known, ...fields })
  return acceptedOutcome(id)
}

/**
 * Removes terminators at a router. Missing terminators are ignored, because the router does not
 * host them. If one of them is at another router, none is removed; before feature level 2, only
 * that terminator was skipped.
 */
export function removeHostedTerminators(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const { ids } = fromBinary(HostedTerminatorsRemoveSchema, payload)
  const router = actingRouter(state, context)
  if (router === undefined) return refusedOutcome('UNAUTHORIZED')
  const isForeign = (id: string): boolean => {
    const known = state.get('terminator', id)
    return known !== undefined && !isHostedAt(known, router.id)
  }
  const foreign = state.featureLevel >= OWN_TERMINATORS_LEVEL ? ids.find(isForeign) : undefined
  // @guard hosting-at-a-router--foreign
  if (foreign !== undefined) return notFoundOutcome('terminator', foreign)
  for (const id of ids) {
    const known = state.get('terminator', id)
    if (known === undefined || isForeign(id)) continue
    removeWithReferences(state, terminator, known, context)
    context.touched.push({ action: 'delete', entity: 'terminator', id, fields: [] })
  }
  return acceptedOutcome('')
}

function actingRouter(state: State, { routerId }: CommandContext): Router | undefined {
  const router = routerId === '' ? undefined : state.get('router', routerId)
  // @guard hosting-at-a-router--disabled
  return router?.isVerified === true && !router.disabled ? router : undefined
}

function isHostedAt(known: Terminator, routerId: string): boolean {
  // @guard hosting-at-a-router--others
  return known.isSystem && known.routerId === routerId
}

function isPrecedence(name: string): boolean {
  return (precedenceNames as readonly string[]).includes(name)
}

function boundsFault(message: HostedTerminatorCreate): Outcome | null {
  const { id, address, cost, precedence, instanceId, instanceSecret, peerData } = message
  const fault = (field: string): Outcome => fieldFaultOutcome({ field, reason: 'is not usable' })
  if (id === '' || id.length > limits.idCharactersMax) return fault('id')
  if (address === '' || address.length > terminatorBounds.addressCharactersMax) {
    return fault('address')
  }
  if (cost > terminatorCostMax) return fault('cost')
  if (!isPrecedence(precedence)) return fault('precedence')
  if (instanceId.length > limits.instanceIdCharactersMax) return fault('identity')
  if (instanceSecret.length > terminatorBounds.secretCharactersMax) return fault('identitySecret')
  const texts = Object.values(peerData)
  const isEachShort = texts.every((text) => text.length <= limits.peerDataCharactersMax)
  return texts.length <= limits.peerDataKeysMax && isEachShort ? null : fault('peerData')
}

/**
 * Fault of a host whose identity or secret differs from that of the other hosts of the same service
 * instance; null if they are equal. They must be equal, so that no other host can receive the
 * instance's dials.
 */
function instanceFault(
  state: State,
  { serviceId, hostId }: Pick<Terminator, 'serviceId' | 'hostId'>,
  { instanceId, instanceSecret }: HostedTerminatorCreate,
): Outcome | null {
  if (instanceId === '') return null
  for (const id of state.table('terminator').indexes.ids('instanceId', instanceId)) {
    const other = state.get('terminator', id)
    if (other?.serviceId !== serviceId) continue
    // @guard hosting-at-a-router--identity
    if (state.featureLevel >= ONE_IDENTITY_LEVEL && other.hostId !== hostId) {
      return fieldFaultOutcome({
        field: 'identity',
        reason: 'another identity hosts this instance',
      })
    }
    // @guard hosting-at-a-router--secret
    if (other.instanceSecret !== instanceSecret) {
      return fieldFaultOutcome({
        field: 'identitySecret',
        reason: 'another host has this identity',
      })
    }
  }
  return null
}

function crowdFault(state: State, routerId: string, identityId: string): Outcome | null {
  const { indexes } = state.table('terminator')
  const isFull =
    indexes.ids('routerId', routerId).size >= limits.terminatorsPerRouterMax ||
    indexes.ids('hostId', identityId).size >= limits.terminatorsPerIdentityMax
  return isFull ? refusedOutcome('SERVER_TOO_MANY_REQUESTS') : null
}
