import { fromBinary } from '@bufbuild/protobuf'
import { ServiceConfigsSchema } from '../../../proto/gen/command_pb.ts'
import type { ConfigType } from '../../entities/kinds/config-type.ts'
import { serviceConfigHolder } from '../../entities/kinds/service-config.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { State } from '../records/state.ts'
import { identityActionRefusal } from '../apply/actor-rights.ts'
import type { CommandContext } from '../apply/command-context.ts'
import { acceptedOutcome, fieldFaultOutcome, notFoundOutcome } from '../apply/outcome.ts'

/**
 * Maximum config overrides of one identity. The overrides are limited because the data about the
 * identity that routers receive contains all of them.
 */
export const serviceConfigsPerIdentityMax = 16_384

interface Association {
  /**
   * Id of the override. It consists of identity, service and config type, so that a second config
   * of the same type replaces the first.
   */
  readonly id: string
  readonly serviceId: string
  readonly configId: string
  readonly type: ConfigType | undefined
}

type Judged =
  | { readonly identityId: string; readonly associations: readonly Association[] }
  | Extract<Outcome, { readonly ok: false }>

function decode(state: State, payload: Uint8Array, context: CommandContext): Judged {
  const { identityId, pairs } = fromBinary(ServiceConfigsSchema, payload)
  if (state.get('identity', identityId) === undefined)
    return notFoundOutcome('identity', identityId)
  const denial = identityActionRefusal(state, identityId, context)
  if (denial !== null) return denial
  const associations: Association[] = []
  for (const { serviceId, configId } of pairs) {
    const config = state.get('config', configId)
    if (config === undefined) return notFoundOutcome('config', configId)
    const id = `${serviceConfigHolder(identityId, serviceId)}:${config.configTypeId}`
    const type = state.get('configType', config.configTypeId)
    associations.push({ id, serviceId, configId, type })
  }
  return { identityId, associations }
}

/** Adds all given config overrides; if one of them is refused, adds none. */
export function associateServiceConfigs(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const judged = decode(state, payload, context)
  if ('ok' in judged) return judged
  const { identityId, associations } = judged
  for (const { serviceId, configId, type } of associations) {
    if (state.get('service', serviceId) === undefined) {
      const reason = `service with id ${serviceId.slice(0, 128)} not found`
      return fieldFaultOutcome({ field: 'serviceConfigs', reason, value: serviceId.slice(0, 128) })
    }
    if (type?.target !== 'service') {
      const reason = `config ${configId} is of the type ${type?.name ?? ''}, which is not for services`
      return fieldFaultOutcome({ field: 'serviceConfigs', reason, value: configId })
    }
  }
  const known = state.table('serviceConfig').indexes.ids('identityId', identityId)
  if (known.size + associations.length > serviceConfigsPerIdentityMax) {
    const reason = `an identity has at most ${serviceConfigsPerIdentityMax} configs of services; remove some first`
    return fieldFaultOutcome({ field: 'serviceConfigs', reason })
  }
  for (const association of associations) put(state, identityId, association, context)
  return acceptedOutcome(identityId)
}

function put(
  state: State,
  identityId: string,
  { id, serviceId, configId }: Association,
  { logTimeMs, index }: CommandContext,
): void {
  state.put('serviceConfig', {
    id,
    createdAt: state.get('serviceConfig', id)?.createdAt ?? logTimeMs,
    updatedAt: logTimeMs,
    revision: index,
    identityId,
    serviceId,
    configId,
    holder: serviceConfigHolder(identityId, serviceId),
  })
}

/**
 * Removes an identity's config overrides for the given services and the types of the given configs;
 * missing overrides are ignored.
 */
export function disassociateServiceConfigs(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const judged = decode(state, payload, context)
  if ('ok' in judged) return judged
  for (const { id } of judged.associations) {
    if (state.get('serviceConfig', id) !== undefined) state.remove('serviceConfig', id)
  }
  return acceptedOutcome(judged.identityId)
}
