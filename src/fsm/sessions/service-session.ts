import { fromBinary } from '@bufbuild/protobuf'
import {
  ServiceSessionCreateSchema,
  ServiceSessionEndSchema,
} from '../../../proto/gen/command_pb.ts'
import type { PostureCheck } from '../../entities/kinds/posture-check.ts'
import { jsonMapBytes, checkFields } from '../../entities/check-fields.ts'
import { session, type Session } from '../../entities/kinds/session.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { isGrantedByAnyPolicy } from '../access/policy-posture-checks.ts'
import { commonRouters } from '../access/routers.ts'
import type { Indexes } from '../records/indexes.ts'
import { linkingPolicies } from '../records/roles.ts'
import type { State } from '../records/state.ts'
import type { CommandContext } from '../apply/command-context.ts'
import { parseFields } from '../apply/entity.ts'
import {
  acceptedOutcome,
  fieldFaultOutcome,
  notFoundOutcome,
  refusedOutcome,
} from '../apply/outcome.ts'
import { removeWithReferences } from '../apply/references.ts'

export const serviceSessionLimits = {
  /** Maximum service sessions in the whole network. */
  serviceSessionsMax: 2_000_000,
  /**
   * Maximum service sessions of one API session; enough for two sessions for each service of a
   * large network.
   */
  serviceSessionsPerApiSessionMax: 32_768,
  /** Maximum service sessions of one identity, over all its API sessions. */
  serviceSessionsPerIdentityMax: 32_768,
  /**
   * Maximum total bytes of the tags on all service sessions of an identity, as canonical JSON.
   */
  serviceSessionTagsBytesPerIdentityMax: 262_144,
} as const

/**
 * Creates the service session with which an API session may dial or host a service. The order of
 * the checks reveals only what the caller may know: a service without access looks like a missing
 * service. The checks apply to administrators, too.
 */
export function createServiceSession(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const message = fromBinary(ServiceSessionCreateSchema, payload)
  const { id, apiSessionId, serviceId, passingChecks, tagsJson } = message
  const tags = tagsJson.length === 0 ? {} : parseFields(tagsJson)
  const fault = checkFields(session, { tags })
  if (fault !== null) return fieldFaultOutcome(fault)
  const type = (['Dial', 'Bind'] as const).find((known) => known === message.type)
  if (type === undefined) {
    return fieldFaultOutcome({ field: 'type', reason: 'type in body should be one of [Dial Bind]' })
  }
  const apiSession = state.get('apiSession', apiSessionId)
  const identity = state.get('identity', apiSession?.identityId ?? '')
  if (apiSession === undefined || identity === undefined) return refusedOutcome('UNAUTHORIZED')
  const service = state.get('service', serviceId)
  const policies = service === undefined ? [] : linkingPolicies(state, identity, service)
  if (service === undefined || policies.length === 0) return notFoundOutcome('service', serviceId)
  const granting = policies.filter((policy) => policy.type === type)
  if (granting.length === 0) {
    return fieldFaultOutcome({ field: 'ServiceId', reason: 'service not found', value: serviceId })
  }
  // A check counts as passing only at the revision that was evaluated; if it has changed since, its
  // requirements may differ.
  const vouchedFor = new Map(passingChecks.map((one) => [one.id, Number(one.revision)]))
  const isPassing = (check: PostureCheck): boolean => vouchedFor.get(check.id) === check.revision
  if (!isGrantedByAnyPolicy(state, granting, isPassing)) return refusedOutcome('INVALID_POSTURE')
  if (commonRouters(state, identity, service).size === 0) {
    return refusedOutcome('NO_EDGE_ROUTERS_AVAILABLE')
  }
  const known = sessionOf(state, apiSessionId, serviceId, type)
  if (known !== undefined) return acceptedOutcome(known.id)
  const wanted = { id, apiSessionId, identityId: identity.id, serviceId, type, tags }
  return insert(state, wanted, context)
}

/** Ends those of the given service sessions that still exist; refused when none of them exists. */
export function endServiceSessions(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const { ids } = fromBinary(ServiceSessionEndSchema, payload)
  let ended = 0
  for (const id of ids) {
    const known = state.get('session', id)
    if (known === undefined) continue
    removeWithReferences(state, session, known, context)
    context.touched.push({ action: 'delete', entity: 'session', id, fields: [] })
    ended += 1
  }
  return ended === 0 ? refusedOutcome('NOT_FOUND') : acceptedOutcome('')
}

interface Wanted extends Pick<
  Session,
  'id' | 'apiSessionId' | 'identityId' | 'serviceId' | 'type'
> {
  readonly tags: JsonObject
}

function insert(state: State, wanted: Wanted, context: CommandContext): Outcome {
  const { id, apiSessionId } = wanted
  const table = state.table('session')
  if (id === '' || table.get(id) !== undefined) {
    return fieldFaultOutcome({ field: 'id', reason: 'id must be unique' })
  }
  const { indexes } = table
  const own = indexes.ids('apiSessionId', apiSessionId).size
  const { serviceSessionsMax, serviceSessionsPerApiSessionMax } = serviceSessionLimits
  if (table.rows.size >= serviceSessionsMax || own >= serviceSessionsPerApiSessionMax) {
    return refusedOutcome('SERVER_TOO_MANY_REQUESTS')
  }
  // @guard filling-the-state--service-sessions
  const excess = excessOf(indexes, wanted)
  if (excess !== null) return refusedOutcome('SERVER_TOO_MANY_REQUESTS', excess)
  const { logTimeMs, index: revision } = context
  state.put('session', { ...wanted, createdAt: logTimeMs, updatedAt: logTimeMs, revision })
  return acceptedOutcome(id)
}

/**
 * Reason to refuse another service session, because the identity would exceed a limit; null: it
 * would not.
 */
function excessOf(indexes: Indexes, { identityId, tags }: Wanted): string | null {
  const { serviceSessionsPerIdentityMax, serviceSessionTagsBytesPerIdentityMax } =
    serviceSessionLimits
  if (indexes.ids('identityId', identityId).size >= serviceSessionsPerIdentityMax) {
    return `the identity has ${serviceSessionsPerIdentityMax} service sessions; end some of them`
  }
  const bytes = indexes.weight(identityId) + jsonMapBytes(tags)
  if (bytes <= serviceSessionTagsBytesPerIdentityMax) return null
  const limit = `${serviceSessionTagsBytesPerIdentityMax} bytes`
  return `the tags of all service sessions of the identity take more than ${limit}; end some of them`
}

function sessionOf(
  state: State,
  apiSessionId: string,
  serviceId: string,
  type: string,
): Session | undefined {
  const { indexes } = state.table('session')
  const ofApiSession = indexes.ids('apiSessionId', apiSessionId)
  const ofService = indexes.ids('serviceId', serviceId)
  const [few, many] =
    ofApiSession.size < ofService.size ? [ofApiSession, ofService] : [ofService, ofApiSession]
  for (const id of few) {
    const known = many.has(id) ? state.get('session', id) : undefined
    if (known?.type === type) return known
  }
  return undefined
}
