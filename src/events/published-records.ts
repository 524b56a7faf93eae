import { kinds } from '../entities/registry.ts'
import type { KindName } from '../entities/kind-records.ts'
import type { Json } from '../lib/text/canonical-json.ts'
import type { EntityRecord } from '../lib/entity-record.ts'

/**
 * Stored fields of records that are published. Whatever is not named here stays inside: a
 * kind or a field that is added later is published by nobody before it is decided on, and a test
 * asks for that. What is withheld is a secret, leads to one, or is of no use outside.
 */
interface Published {
  readonly shown: readonly string[]
  readonly withheld: readonly string[]
  /** Name of the type, where it is not the plural of the descriptor. */
  readonly typeName?: string
}

export const publishedRecords: Readonly<Partial<Record<KindName, Published>>> = {
  apiSession: {
    shown: [
      'identityId',
      'authenticatorId',
      'caId',
      'signerId',
      'hasImproperChain',
      'ipAddress',
      'api',
      'clientId',
      'configTypes',
      'lastActivityAt',
      'isMfaComplete',
      'mfaPassedAt',
    ],
    withheld: ['certFingerprint', 'codeHash', 'codeRedeemedAt', 'certificateRequest'],
  },
  authPolicy: {
    shown: ['name', 'primary', 'secondary', 'isSystem'],
    withheld: ['allowedSignerIds', 'requiredSignerIds'],
  },
  authenticator: {
    shown: [
      'method',
      'identityId',
      'username',
      'certPem',
      'fingerprint',
      'caId',
      'extendRequestedAt',
      'isExtendRequested',
      'isIssuedByNetwork',
      'isKeyRollRequested',
      'lastAuthResolvedToRoot',
      'lastExtendRolledKeys',
    ],
    withheld: [
      'passwordHash',
      'publicKeyPrint',
      'enrolledBy',
      'nextCertPem',
      'nextFingerprint',
      'nextPublicKeyPrint',
    ],
  },
  ca: {
    shown: [
      'name',
      'certPem',
      'fingerprint',
      'identityNameFormat',
      'identityRoles',
      'isAuthEnabled',
      'isAutoCaEnrollmentEnabled',
      'isOttCaEnrollmentEnabled',
      'isVerified',
      'externalIdClaim',
    ],
    withheld: ['verificationToken'],
  },
  config: { shown: ['name', 'configTypeId', 'data'], withheld: [] },
  configType: { shown: ['name', 'schema', 'target'], withheld: [] },
  controllerSetting: { shown: ['oidc'], withheld: [] },
  edgeRouterPolicy: {
    shown: ['name', 'semantic', 'identityRoles', 'edgeRouterRoles', 'isSystem'],
    withheld: [],
  },
  enrollment: {
    shown: [
      'method',
      'expiresAt',
      'identityId',
      'edgeRouterId',
      'transitRouterId',
      'caId',
      'username',
    ],
    withheld: ['token', 'jwt'],
  },
  externalJwtSigner: {
    shown: [
      'name',
      'audience',
      'clientId',
      'externalAuthUrl',
      'scopes',
      'targetToken',
      'enabled',
      'enrollToCertEnabled',
      'enrollToTokenEnabled',
      'issuer',
      'certPem',
      'jwksEndpoint',
      'kid',
      'claimsProperty',
      'useExternalId',
      'enrollAuthPolicyId',
      'enrollNameClaimsSelector',
      'enrollAttributeClaimsSelector',
      'commonName',
      'fingerprint',
      'notBefore',
      'notAfter',
    ],
    withheld: [],
  },
  identity: {
    shown: [
      'name',
      'typeId',
      'isAdmin',
      'isDefaultAdmin',
      'authPolicyId',
      'externalId',
      'roleAttributes',
      'appData',
      'defaultHostingCost',
      'defaultHostingPrecedence',
      'serviceHostingCosts',
      'serviceHostingPrecedences',
      'permissions',
      'disabledAt',
      'disabledUntil',
      'envInfo',
      'sdkInfo',
    ],
    withheld: [],
  },
  identityType: { shown: ['name'], withheld: [] },
  mfa: {
    shown: ['identityId', 'isVerified'],
    withheld: ['secretId', 'codesId', 'sealed', 'keyVersion', 'lastStep', 'usedCodes'],
  },
  postureCheck: {
    shown: [
      'name',
      'typeId',
      'roleAttributes',
      'operatingSystems',
      'domains',
      'macAddresses',
      'process',
      'processes',
      'semantic',
      'timeoutSeconds',
      'promptOnWake',
      'promptOnUnlock',
      'ignoreLegacyEndpoints',
    ],
    withheld: [],
  },
  postureCheckType: { shown: ['name', 'version', 'operatingSystems'], withheld: [] },
  revocation: { shown: ['type', 'expiresAt'], withheld: [] },
  router: {
    shown: [
      'name',
      'cost',
      'noTraversal',
      'disabled',
      'ctrlChanListeners',
      'configs',
      'fingerprint',
      'isVerified',
      'certPem',
      'isTransit',
      'isEdge',
      'isTunnelerEnabled',
      'roleAttributes',
      'appData',
      'allowedNames',
      'certificateNames',
    ],
    withheld: [
      'serverCertPem',
      'nextCertPem',
      'nextServerCertPem',
      'nextFingerprint',
      'nextCertificateNames',
      'enrolledBy',
    ],
  },
  service: {
    shown: [
      'name',
      'encryptionRequired',
      'terminatorStrategy',
      'maxIdleTimeMillis',
      'configs',
      'roleAttributes',
      'isFabricOnly',
    ],
    withheld: [],
  },
  serviceConfig: { shown: ['identityId', 'serviceId', 'configId'], withheld: ['holder'] },
  serviceEdgeRouterPolicy: {
    shown: ['name', 'semantic', 'serviceRoles', 'edgeRouterRoles'],
    withheld: [],
  },
  servicePolicy: {
    shown: [
      'name',
      'type',
      'semantic',
      'identityRoles',
      'serviceRoles',
      'postureCheckRoles',
      'isSystem',
    ],
    withheld: [],
  },
  session: { shown: ['apiSessionId', 'identityId', 'serviceId', 'type'], withheld: [] },
  sessionCertificate: {
    shown: ['apiSessionId', 'identityId', 'fingerprint', 'subject', 'validFrom', 'validTo'],
    withheld: ['certificate'],
    typeName: 'sessionCerts',
  },
  terminator: {
    shown: [
      'serviceId',
      'routerId',
      'binding',
      'address',
      'cost',
      'precedence',
      'instanceId',
      'hostId',
      'sourceCtrl',
      'isSystem',
      'isFabricOnly',
    ],
    withheld: ['instanceSecret', 'peerData'],
  },
}

export const publishedKinds = Object.keys(publishedRecords) as readonly KindName[]

/** Kinds that are inner workings of the cluster, or hold nothing but secrets. */
export const unpublishedRecords: readonly KindName[] = [
  'accessMark',
  'admission',
  'integrityRun',
  'joinTicket',
  'logTimeReset',
  'mfaAttempts',
  'passwordAttempts',
  'sharedSecret',
]

interface Shape {
  readonly typeName: string
  readonly fields: readonly { readonly name: string; readonly isTime: boolean }[]
}

const shapes: ReadonlyMap<KindName, Shape> = new Map(
  (Object.entries(publishedRecords) as [KindName, Published][]).map(
    ([kind, { shown, typeName }]) => {
      const entity = kinds[kind]
      const fields = [...shown, 'tags'].map((name) => ({
        name,
        isTime: entity.fields[name]?.kind === 'timestamp',
      }))
      return [kind, { typeName: typeName ?? entity.plural, fields }]
    },
  ),
)

/** Names of the kinds that entity changes tell of, as filters give them. */
export const entityTypeNames: readonly string[] = [...shapes.values()]
  .map(({ typeName }) => typeName)
  .sort()

export function typeNameOf(kind: KindName): string {
  return shapes.get(kind)?.typeName ?? kind
}

/** A record without its secrets, times as RFC 3339. */
export function shownRecord(kind: KindName, record: EntityRecord): Readonly<Record<string, Json>> {
  const { id, createdAt, updatedAt } = record
  const shown: Record<string, Json> = {
    id,
    createdAt: new Date(createdAt).toISOString(),
    updatedAt: new Date(updatedAt).toISOString(),
  }
  for (const { name, isTime } of shapes.get(kind)?.fields ?? []) {
    const value = record[name]
    if (value === undefined) continue
    shown[name] = isTime && typeof value === 'number' ? new Date(value).toISOString() : value
  }
  return shown
}

const EMPTY_WEIGHT = 128
const VALUE_WEIGHT = 24

/** About how many characters a record takes as text, and so at least in memory. */
export function weightOf(record: EntityRecord | undefined): number {
  if (record === undefined) return 0
  let weight = EMPTY_WEIGHT
  for (const name in record) {
    const value = record[name] ?? null
    // Most values are texts.
    weight += VALUE_WEIGHT + (typeof value === 'string' ? value.length : valueWeight(value))
  }
  return weight
}

function valueWeight(value: Json): number {
  if (typeof value === 'string') return value.length
  if (value === null || typeof value !== 'object') return 8
  let weight = 2
  if (Array.isArray(value)) {
    for (const item of value as readonly Json[]) weight += 4 + valueWeight(item)
    return weight
  }
  for (const [name, member] of Object.entries(value))
    weight += name.length + 4 + valueWeight(member)
  return weight
}
