import { isObject } from '../../entities/check-fields.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'
import type { NetworkSection } from './sections.ts'
import { disabledFields } from './disabled-state.ts'

/**
 * Fields that are not lost although an import does not copy them: a network computes them or
 * receives them from devices and routers, or the import carries their content over in another way.
 * Every other field that an import cannot contain is lost.
 */
const regained: Readonly<Record<string, readonly string[]>> = {
  externalJwtSigner: ['commonName', 'fingerprint', 'notBefore', 'notAfter'],
  ca: ['fingerprint', 'verificationToken'],
  postureCheck: ['version'],
  service: ['config', 'permissions', 'postureQueries'],
  edgeRouterPolicy: ['isSystem'],
  servicePolicy: ['isEnded'],
  edgeRouter: [
    'adoptableFingerprint',
    'certificateNames',
    'interfaces',
    'isOnline',
    'onlineSince',
    'offlineSince',
    'unverifiedFingerprint',
    'enrollmentJwt',
    'enrollmentCreatedAt',
    'enrollmentExpiresAt',
    'fingerprint',
    'certPem',
    'hostname',
    'supportedProtocols',
    'syncStatus',
    'capabilities',
    'capabilitiesMask',
    'version',
    'versionInfo',
  ],
  identity: [
    ...disabledFields,
    'disabledAt',
    'isDefaultAdmin',
    'envInfo',
    'sdkInfo',
    'passwordLock',
    'hasApiSession',
    'lastSeenAt',
    'hasEdgeRouterConnection',
    'edgeRouterConnectionStatus',
    'roleAttributeEndsAt',
    'interfaces',
  ],
}

const enrollRouters = 'enroll these routers again'
/**
 * Remedies for lost fields. For a field without an entry, the operator has to check the objects.
 */
const remedies: Readonly<Record<string, string>> = {
  'ca isVerified': 'verify them with: flotilla ca verify',
  'edgeRouter isVerified': enrollRouters,
  'edgeRouter enrollmentToken': enrollRouters,
  'edgeRouter unverifiedCertPem': enrollRouters,
  'identity enrollment': 'create new ones with: flotilla create enrollment',
  'identity authenticators': 'enroll these identities again',
  'identity isMfaEnabled': 'they set up their second factor again',
}

const NAMES_MAX = 5

type Kinded = Pick<NetworkSection, 'kind'>

/** Counts the fields of an export that an import cannot carry over. */
export class UnimportedFields {
  /** Names of the objects that lose a field, for each section and field. */
  readonly #lost = new Map<string, { readonly names: string[]; readonly remedy: string }>()
  readonly #unknown = new Map<string, number>()

  /**
   * Records a field that does not exist in a network file.
   * @param sectionName name of the section in the export.
   */
  add({ kind }: Kinded, sectionName: string, item: JsonObject, key: string): void {
    const value = item[key] ?? null
    if (value === null) return
    const at = `${sectionName}.${key}`
    const field = kind.fields.find(({ name, alias }) => name === key || alias === key)
    if (field === undefined) {
      this.#unknown.set(at, (this.#unknown.get(at) ?? 0) + 1)
      return
    }
    if (isEmpty(value) || regained[kind.id]?.includes(field.name) === true) return
    const remedy = remedies[`${kind.id} ${field.name}`] ?? 'see to them after the import'
    const found = this.#lost.get(at) ?? { names: [], remedy }
    found.names.push(String(item['name'] ?? ''))
    // @guard import-that-loses-rights--said
    this.#lost.set(at, found)
  }

  /** One sentence for each lost field, and one for all unknown fields. */
  notes(): string[] {
    const lost = [...this.#lost].map(([at, { names, remedy }]) => {
      const more = names.length > NAMES_MAX ? ` and ${names.length - NAMES_MAX} more` : ''
      const shown = names.slice(0, NAMES_MAX).join(', ')
      return `not carried over: ${at} of ${names.length} (${printableLine(shown)}${more}); ${remedy}`
    })
    const unknown = [...this.#unknown].map(([at, count]) => `${at} (${count})`).sort()
    return unknown.length === 0 ? lost : [...lost, `ignored fields: ${unknown.join(', ')}`]
  }
}

/** True for a value that carries no information, in any field. */
function isEmpty(value: Json): boolean {
  if (value === null || value === '' || value === false) return true
  if (Array.isArray(value)) return value.length === 0
  return isObject(value) && Object.values(value).every(isEmpty)
}
