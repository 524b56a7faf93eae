import type { Identity } from '../../entities/kinds/identity.ts'
import type { PostureCheck } from '../../entities/kinds/posture-check.ts'
import { serviceConfigHolder } from '../../entities/kinds/service-config.ts'
import type { RecordOf } from '../../entities/kind-records.ts'
import type {
  ModelAction,
  ModelPostureCheckRules,
  ModelEvent,
  ModelIdentity,
  ModelProcess,
} from '../../ports/router-model.ts'
import { canonicalJson, type Json } from '../../lib/text/canonical-json.ts'
import { extractHexDigits } from '../../lib/text/hex-digits.ts'
import type { State } from '../records/state.ts'

/**
 * Kinds whose records are part of the model. A kind precedes the kinds that reference it, except
 * that the data of an identity can contain ids of services. OpenZiti's controllers send the same
 * order; no router looks up a service when it receives an identity.
 */
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

export type ModelKind = (typeof modelKinds)[number]
type EventOf<K extends ModelKind> = (
  action: ModelAction,
  record: RecordOf<K>,
  state: State,
) => ModelEvent

const events: { readonly [K in ModelKind]: EventOf<K> } = {
  configType: (action, { id, name, target }) => ({
    kind: 'configType',
    action,
    value: { id, name, target },
  }),
  config: (action, { id, name, configTypeId: typeId, data }) => ({
    kind: 'config',
    action,
    value: { id, name, typeId, dataJson: goJson(data) },
  }),
  identity: (action, record, state) => ({
    kind: 'identity',
    action,
    value: toModelIdentity(state, record),
  }),
  service: (action, { id, name, encryptionRequired, configs }) => ({
    kind: 'service',
    action,
    value: { id, name, encryptionRequired, configs },
  }),
  router: (action, { id, name, fingerprint, configs, disabled: isDisabled }) => ({
    kind: 'router',
    action,
    value: { id, name, fingerprint: fingerprint ?? '', configs, isDisabled },
  }),
  postureCheck: (action, check) => ({
    kind: 'postureCheck',
    action,
    value: { id: check.id, name: check.name, typeId: check.typeId, terms: termsOf(check) },
  }),
  servicePolicy: (action, { id, name, type }) => ({
    kind: 'servicePolicy',
    action,
    value: { id, name, type },
  }),
  ca: (action, { id, certPem }) => ({ kind: 'authority', action, value: { id, certPem } }),
  revocation: (action, { id, type, expiresAt, createdAt }) => ({
    kind: 'revocation',
    action,
    value: { id, type, expiresAt: expiresAt ?? 0, issuedBefore: createdAt },
  }),
}

/** Event about a record, with the data that routers receive. */
export function toModelRecordEvent<K extends ModelKind>(
  state: State,
  kind: K,
  action: ModelAction,
  record: RecordOf<K>,
): ModelEvent {
  return events[kind](action, record, state)
}

/**
 * JSON as Go writes it: sorted keys, and these characters escaped. When an OpenZiti router receives
 * a whole model, it compares texts with those that it received from another controller, possibly an
 * OpenZiti controller. If they differ, it stops the services that it hosts, and hosts them again
 * under new terminators.
 */
function goJson(value: Json): string {
  return canonicalJson(value).replaceAll(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** The fields of an identity that edge routers receive. */
export function toModelIdentity(state: State, identity: Identity): ModelIdentity {
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
    appDataJson: Object.keys(identity.appData).length === 0 ? '' : goJson(identity.appData),
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

function termsOf(check: PostureCheck): ModelPostureCheckRules {
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
    hashes: withDigits(textsIn(process['hashes'])),
    fingerprints: withDigits(typeof one === 'string' && one !== '' ? [one] : fingerprints),
  }
}

/**
 * Each value both unchanged and as plain hexadecimal digits. Controllers compare only the digits;
 * an OpenZiti router compares the text that a client reports, which may contain separators or a
 * line break.
 */
function withDigits(texts: readonly string[]): readonly string[] {
  const all = texts.flatMap((text) => [text, extractHexDigits(text)])
  return [...new Set(all)].filter((text) => text !== '')
}

function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((text) => typeof text === 'string') : []
}
