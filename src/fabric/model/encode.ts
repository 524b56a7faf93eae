import { create, type MessageInitShape } from '@bufbuild/protobuf'

import {
  ModelAction as Action,
  type ModelEvent as EncodedEvent,
  ModelEventSchema,
  ModelPolicyType,
  type ModelPostureCheckSchema,
  ModelPrecedence,
  ModelRelatedType,
} from '../../../proto/gen/router_pb.ts'
import { isDisabled } from '../../lib/is-disabled.ts'
import type { ModelPostureCheckRules, ModelEvent, ModelIdentity } from '../../ports/router-model.ts'
import { authorityPublicKey } from './public-keys.ts'

const EVERY_VERSION = '>=0.0.0'

const utf8 = new TextEncoder()
const actions = { create: Action.CREATE, update: Action.UPDATE, delete: Action.DELETE } as const
const policyTypes = {
  Dial: ModelPolicyType.DIAL_POLICY,
  Bind: ModelPolicyType.BIND_POLICY,
} as const
const relatedTypes = {
  service: ModelRelatedType.RELATED_SERVICE,
  identity: ModelRelatedType.RELATED_IDENTITY,
  postureCheck: ModelRelatedType.RELATED_POSTURE_CHECK,
} as const

type Model = NonNullable<MessageInitShape<typeof ModelEventSchema>['model']>

/**
 * @param nowMs current time, UTC; determines whether an identity is disabled.
 * @returns null for a CA whose certificate cannot be parsed.
 */
export function encodeModelEvent(event: ModelEvent, nowMs: number): EncodedEvent | null {
  const model = modelOf(event, nowMs)
  if (model === null) return null
  const action = event.kind === 'members' ? Action.CREATE : actions[event.action]
  return create(ModelEventSchema, { action, model })
}

function modelOf(event: ModelEvent, nowMs: number): Model | null {
  switch (event.kind) {
    case 'identity':
      return { case: 'identity', value: identityOf(event.value, nowMs) }
    case 'service':
      return { case: 'service', value: { ...event.value, configs: [...event.value.configs] } }
    case 'config':
    case 'configType':
      return { case: event.kind, value: event.value } as Model
    case 'router': {
      const { id, name, fingerprint, configs, isDisabled: disabled } = event.value
      const value = { id, name, fingerprint, configs: [...configs], disabled }
      return { case: 'router', value }
    }
    case 'servicePolicy': {
      const { id, name, type } = event.value
      return { case: 'servicePolicy', value: { id, name, policyType: policyTypes[type] } }
    }
    case 'postureCheck': {
      const { id, name, typeId, terms } = event.value
      return { case: 'postureCheck', value: { id, name, typeId, subtype: subtypeOf(terms) } }
    }
    case 'authority': {
      const value = authorityPublicKey(event.value.certPem)
      return value === null ? null : { case: 'publicKey', value }
    }
    case 'revocation': {
      const { id, type, expiresAt, issuedBefore } = event.value
      const times = { expiresAt: timestamp(expiresAt), issuedBefore: timestamp(issuedBefore) }
      return { case: 'revocation', value: { id, type, ...times } }
    }
    case 'members': {
      const { policyId, of, ids, isAdded: add } = event
      return {
        case: 'servicePolicyChange',
        value: {
          policyId,
          add,
          relatedEntityIds: [...ids],
          relatedEntityType: relatedTypes[of],
        },
      }
    }
  }
}

function identityOf(identity: ModelIdentity, nowMs: number) {
  const { id, name, defaultHostingCost, serviceHostingCosts } = identity
  const configs = Object.entries(identity.serviceConfigs)
  const precedences = Object.entries(identity.serviceHostingPrecedences)
  return {
    id,
    name,
    defaultHostingCost,
    defaultHostingPrecedence: precedenceOf(identity.defaultHostingPrecedence),
    serviceHostingCosts: { ...serviceHostingCosts },
    serviceHostingPrecedences: Object.fromEntries(
      precedences.map(([serviceId, name]) => [serviceId, precedenceOf(name)]),
    ),
    appDataJson: utf8.encode(identity.appDataJson),
    serviceConfigs: Object.fromEntries(
      configs.map(([serviceId, byType]) => [serviceId, { configs: { ...byType } }]),
    ),
    disabled: isDisabled(identity, nowMs),
  }
}

function precedenceOf(name: string): ModelPrecedence {
  if (name === 'required') return ModelPrecedence.REQUIRED
  return name === 'failed' ? ModelPrecedence.FAILED : ModelPrecedence.DEFAULT
}

type Subtype = NonNullable<MessageInitShape<typeof ModelPostureCheckSchema>['subtype']>

function subtypeOf(terms: ModelPostureCheckRules): Subtype {
  switch (terms.case) {
    case 'mac':
      return { case: 'mac', value: { macAddresses: [...terms.macAddresses] } }
    case 'domains':
      return { case: 'domains', value: { domains: [...terms.domains] } }
    case 'os':
      return {
        case: 'osList',
        value: {
          osList: terms.systems.map(({ osType, versions }) => ({
            osType,
            // An empty list means any version, but OpenZiti routers would accept none, so the list
            // then contains a range of all versions.
            osVersions: versions.length === 0 ? [EVERY_VERSION] : [...versions],
          })),
        },
      }
    case 'process':
      return { case: 'process', value: copied(terms.process) }
    case 'processes': {
      const { semantic, processes } = terms
      return { case: 'processMulti', value: { semantic, processes: processes.map(copied) } }
    }
    case 'mfa': {
      const { timeoutSeconds, promptOnWake, promptOnUnlock, ignoreLegacyEndpoints } = terms
      return {
        case: 'mfa',
        value: {
          timeoutSeconds: BigInt(timeoutSeconds),
          promptOnWake,
          promptOnUnlock,
          ignoreLegacyEndpoints,
        },
      }
    }
  }
}

function copied(process: {
  readonly osType: string
  readonly path: string
  readonly hashes: readonly string[]
  readonly fingerprints: readonly string[]
}) {
  const { osType, path, hashes, fingerprints } = process
  return { osType, path, hashes: [...hashes], fingerprints: [...fingerprints] }
}

function timestamp(ms: number) {
  const seconds = Math.floor(ms / 1000)
  return { seconds: BigInt(seconds), nanos: Math.round((ms - seconds * 1000) * 1_000_000) }
}
