import type { Ca } from '../../entities/kinds/ca.ts'
import type { Config } from '../../entities/kinds/config.ts'
import type { ConfigType } from '../../entities/kinds/config-type.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import type { PostureCheck } from '../../entities/kinds/posture-check.ts'
import type { Revocation } from '../../entities/kinds/revocation.ts'
import type { Router } from '../../entities/kinds/router.ts'
import { serviceConfigHolder } from '../../entities/kinds/service-config.ts'
import type { ServicePolicy } from '../../entities/kinds/service-policy.ts'
import type { Service } from '../../entities/kinds/service.ts'
import type { KindName } from '../../entities/kind-records.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type {
  ModelAction,
  ModelCheckTerms,
  ModelEvent,
  ModelIdentity,
  ModelProcess,
} from '../../ports/router-model.ts'
import type { State } from '../records/state.ts'

/** Kinds whose records are part of the model, what others name before the others. */
export const modelKinds = [
  'configType',
  'config',
  'identity',
  'service',
  'router',
  'postureCheck',
  'servicePolicy',
  'ca',
  'revocation',
] as const

/** A record as routers are told of it. */
export function recordEvent(
  state: State,
  kind: KindName,
  action: ModelAction,
  record: EntityRecord,
): ModelEvent | null {
  switch (kind) {
    case 'configType': {
      const { id, name, target } = record as ConfigType
      return { kind, action, value: { id, name, target } }
    }
    case 'config': {
      const { id, name, configTypeId: typeId, data } = record as Config
      return { kind, action, value: { id, name, typeId, dataJson: JSON.stringify(data) } }
    }
    case 'identity':
      return { kind, action, value: identityOf(state, record as Identity) }
    case 'service': {
      const { id, name, encryptionRequired, configs } = record as Service
      return { kind, action, value: { id, name, encryptionRequired, configs } }
    }
    case 'router': {
      const { id, name, fingerprint, configs, disabled: isDisabled } = record as Router
      const value = { id, name, fingerprint: fingerprint ?? '', configs, isDisabled }
      return { kind, action, value }
    }
    case 'postureCheck': {
      const check = record as PostureCheck
      const { id, name, typeId } = check
      return { kind, action, value: { id, name, typeId, terms: termsOf(check) } }
    }
    case 'servicePolicy': {
      const { id, name, type } = record as ServicePolicy
      return { kind, action, value: { id, name, type } }
    }
    case 'ca': {
      const { id, certPem } = record as Ca
      return { kind: 'authority', action, value: { id, certPem } }
    }
    case 'revocation': {
      const { id, type, expiresAt, createdAt } = record as Revocation
      const value = { id, type, expiresAt: expiresAt ?? 0, issuedBefore: createdAt }
      return { kind, action, value }
    }
    default:
      return null
  }
}

export function identityOf(state: State, identity: Identity): ModelIdentity {
  const { id, name, defaultHostingPrecedence, defaultHostingCost } = identity
  const { serviceHostingPrecedences, serviceHostingCosts, disabledAt, disabledUntil } = identity
  return {
    id,
    name,
    defaultHostingPrecedence,
    defaultHostingCost,
    serviceHostingPrecedences,
    serviceHostingCosts,
    disabledAt,
    disabledUntil,
    appDataJson: JSON.stringify(identity.appData),
    serviceConfigs: ownConfigsOf(state, id),
  }
}

function ownConfigsOf(state: State, identityId: string): ModelIdentity['serviceConfigs'] {
  const found: Record<string, Record<string, string>> = {}
  for (const id of state.table('serviceConfig').indexes.ids('identityId', identityId)) {
    const own = state.get('serviceConfig', id)
    const config = own === undefined ? undefined : state.get('config', own.configId)
    if (own?.holder !== serviceConfigHolder(identityId, own?.serviceId ?? '')) continue
    if (config !== undefined) (found[own.serviceId] ??= {})[config.configTypeId] = own.configId
  }
  return found
}

type Fields = Readonly<Record<string, unknown>>

function termsOf(check: PostureCheck): ModelCheckTerms {
  switch (check.typeId) {
    case 'MAC':
      return { case: 'mac', macAddresses: check.macAddresses }
    case 'DOMAIN':
      return { case: 'domains', domains: check.domains }
    case 'OS':
      return {
        case: 'os',
        systems: (check.operatingSystems as readonly Fields[]).map(({ type, versions }) => ({
          osType: String(type),
          versions: textsIn(versions),
        })),
      }
    case 'PROCESS':
      return { case: 'process', process: processOf((check.process ?? {}) as Fields) }
    case 'PROCESS_MULTI':
      return {
        case: 'processes',
        semantic: check.semantic,
        processes: (check.processes as readonly Fields[]).map(processOf),
      }
    case 'MFA': {
      const { timeoutSeconds, promptOnWake, promptOnUnlock, ignoreLegacyEndpoints } = check
      return {
        case: 'mfa',
        timeoutSeconds,
        promptOnWake,
        promptOnUnlock,
        ignoreLegacyEndpoints,
      }
    }
  }
}

function processOf(process: Fields): ModelProcess {
  const { signerFingerprint: one } = process
  const fingerprints = textsIn(process['signerFingerprints'])
  return {
    osType: typeof process['osType'] === 'string' ? process['osType'] : '',
    path: typeof process['path'] === 'string' ? process['path'] : '',
    hashes: textsIn(process['hashes']),
    fingerprints: typeof one === 'string' && one !== '' ? [one] : fingerprints,
  }
}

function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((text) => typeof text === 'string') : []
}
