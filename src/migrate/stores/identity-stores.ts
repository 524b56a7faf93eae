/**
 * Identities and their credentials. Source: ziti 804f55abb, controller/db/identity_store.go:35-345,
 * authenticator_store.go:29-272, enrollment_store.go:27-142, mfa_store.go:25-31.
 */
import { serviceConfigHolder } from '../../entities/kinds/service-config.ts'
import type { Json } from '../../lib/text/canonical-json.ts'
import { toHex } from '../../lib/text/to-hex.ts'
import { decodeBase32 } from '../../pki/secrets/totp.ts'
import {
  type Conversion,
  ID_CHARACTERS_MAX,
  readChoiceOrNull,
  readPrecedence,
  type StoreTable,
} from './conversion.ts'
import {
  baseFieldRules,
  unchangedFieldRule,
  convertedFieldRule,
  droppedFieldRule,
  type StoredFieldRules,
  linkFieldRule,
} from './stored-field-rules.ts'
import {
  issuingAuthorityId,
  checkIssuer,
  readCertificateWithSha1,
  readNextCertificate,
} from './stored-certificate.ts'
import type { StoredRecord } from './stored-record.ts'

const environmentNames = {
  envInfoArch: 'arch',
  envInfoOs: 'os',
  envInfoRelease: 'osRelease',
  envInfoVersion: 'osVersion',
  envInfoDomain: 'domain',
  envInfoHostname: 'hostname',
} as const
const sdkNames = {
  sdkInfoBranch: 'branch',
  sdkInfoRevision: 'revision',
  sdkInfoType: 'type',
  sdkInfoVersion: 'version',
  sdkInfoAppId: 'appId',
  sdkInfoAppVersion: 'appVersion',
} as const

function textRows(names: Readonly<Record<string, string>>): StoredFieldRules {
  return Object.fromEntries(Object.keys(names).map((name) => [name, unchangedFieldRule('text')]))
}

function textsOf(record: StoredRecord, names: Readonly<Record<string, string>>) {
  const found: Record<string, string> = {}
  for (const [name, member] of Object.entries(names)) {
    const text = record.text(name)
    if (text !== null && text !== '') found[member] = text
  }
  return found
}

export const identityStore: StoreTable = {
  store: 'identities',
  kind: 'identity',
  why: '',
  rows: {
    ...baseFieldRules,
    name: unchangedFieldRule('text'),
    type: unchangedFieldRule('text'),
    isDefaultAdmin: unchangedFieldRule('boolean'),
    isAdmin: unchangedFieldRule('boolean'),
    authPolicyId: unchangedFieldRule('text'),
    externalId: unchangedFieldRule('text'),
    roleAttributes: unchangedFieldRule('texts'),
    appData: unchangedFieldRule('map'),
    defaultHostingCost: unchangedFieldRule('int32'),
    defaultHostingPrecedence: convertedFieldRule('int32', 'to its name'),
    serviceHostingCosts: unchangedFieldRule('map'),
    serviceHostingPrecedences: convertedFieldRule('map', 'to their names'),
    serviceConfigs: convertedFieldRule('map', 'to further records'),
    disabledAt: convertedFieldRule('time', 'to milliseconds'),
    disabledUntil: convertedFieldRule('time', 'to milliseconds'),
    permissions: unchangedFieldRule('texts', { since: '2.0' }),
    interfaces: droppedFieldRule('map', 'its host reports them again', { since: '1.6' }),
    ...textRows(environmentNames),
    ...textRows(sdkNames),
    routers: linkFieldRule,
    dialServices: linkFieldRule,
    bindServices: linkFieldRule,
    servicePolicies: linkFieldRule,
    edgeRouterPolicies: linkFieldRule,
    authenticators: linkFieldRule,
    enrollments: linkFieldRule,
  },
  convert: (record, conversion) => {
    const precedencesOfServices = Object.entries(record.map('serviceHostingPrecedences'))
    conversion.put('identity', record, {
      name: record.text('name') ?? '',
      typeId: record.text('type') || 'Default',
      isAdmin: record.flag('isAdmin'),
      isDefaultAdmin: record.flag('isDefaultAdmin'),
      authPolicyId: record.text('authPolicyId') || 'default',
      externalId: record.text('externalId') || null,
      roleAttributes: record.texts('roleAttributes'),
      appData: record.map('appData'),
      defaultHostingCost: record.integer('defaultHostingCost'),
      defaultHostingPrecedence: readPrecedence(
        record,
        'defaultHostingPrecedence',
        record.integer('defaultHostingPrecedence'),
      ),
      serviceHostingCosts: numbersOf(record, 'serviceHostingCosts'),
      serviceHostingPrecedences: Object.fromEntries(
        precedencesOfServices.map(([id, index]) => [
          id,
          readPrecedence(record, 'serviceHostingPrecedences', index),
        ]),
      ),
      permissions: record.texts('permissions'),
      disabledAt: record.time('disabledAt'),
      disabledUntil: record.time('disabledUntil'),
      envInfo: textsOf(record, environmentNames),
      sdkInfo: textsOf(record, sdkNames),
    })
    putServiceConfigs(record, conversion)
  },
}

function numbersOf(record: StoredRecord, name: string): Record<string, number> {
  const found: Record<string, number> = {}
  for (const [id, value] of Object.entries(record.map(name))) {
    if (typeof value === 'number') found[id] = value
    else record.note('lost', `${name}.${id}`, 'it is no number')
  }
  return found
}

/**
 * Maximum characters of an override's id, which joins the ids of an identity, a service and a
 * config type.
 */
const OVERRIDE_ID_CHARACTERS_MAX = 3 * ID_CHARACTERS_MAX + 2

/** Migrates the config overrides of an identity: for each service, one config per config type. */
function putServiceConfigs(record: StoredRecord, conversion: Conversion): void {
  for (const [serviceId, configs] of Object.entries(record.map('serviceConfigs'))) {
    for (const [configTypeId, configId] of membersOf(configs)) {
      if (typeof configId !== 'string') {
        record.note('lost', `serviceConfigs.${serviceId}`, 'it is no id of a config')
        continue
      }
      const id = `${record.id}:${serviceId}:${configTypeId}`
      if (id.length > OVERRIDE_ID_CHARACTERS_MAX) {
        const reason = `its id would have more than ${OVERRIDE_ID_CHARACTERS_MAX} characters`
        record.note('lost', 'serviceConfigs', reason)
        continue
      }
      conversion.putOther('serviceConfig', record, id, {
        identityId: record.id,
        serviceId,
        configId,
        holder: serviceConfigHolder(record.id, serviceId),
      })
    }
  }
}

function membersOf(value: Json): [string, Json][] {
  const isMap = value !== null && typeof value === 'object' && !Array.isArray(value)
  return isMap ? Object.entries(value) : []
}

export const authenticatorStore: StoreTable = {
  store: 'authenticators',
  kind: 'authenticator',
  why: '',
  rows: {
    ...baseFieldRules,
    method: unchangedFieldRule('text'),
    identity: unchangedFieldRule('text'),
    updbUsername: unchangedFieldRule('text'),
    updbPassword: convertedFieldRule('text', 'hash and salt become one text (PHC)'),
    updbSalt: convertedFieldRule('text', 'hash and salt become one text (PHC)'),
    certPem: unchangedFieldRule('text'),
    certFingerprint: convertedFieldRule('text', 'computed from certPem'),
    isIssuedByNetwork: unchangedFieldRule('boolean'),
    unverifiedCertPem: unchangedFieldRule('text'),
    unverifiedCertFingerprint: convertedFieldRule('text', 'computed from unverifiedCertPem'),
    isExtendRequested: unchangedFieldRule('boolean', { since: '1.6' }),
    isKeyRollRequested: unchangedFieldRule('boolean', { since: '1.6' }),
    extendRequestedAt: convertedFieldRule('time', 'to milliseconds', { since: '1.6' }),
    publicKeyPrint: convertedFieldRule('text', 'computed from certPem', { since: '1.6' }),
    lastAuthResolvedToRoot: unchangedFieldRule('boolean', { since: '1.6' }),
    lastExtendRolledKeys: unchangedFieldRule('boolean', { since: '1.6' }),
  },
  convert: (record, conversion) => {
    const method = readChoiceOrNull(record, 'method', ['updb', 'cert'])
    if (method === 'updb') convertPassword(record, conversion)
    if (method === 'cert') convertCertificate(record, conversion)
  },
}

const SALT = /^[A-Za-z0-9+/]{8,128}={0,2}$/
/** Matches 32 bytes in base64, the hash of a password. */
const HASH = /^[A-Za-z0-9+/]{43}=$/
/** OpenZiti's parameters of password hashes. Source: ziti controller/model/hash.go:32-49. */
const ARGON2 = '$argon2id$v=19$m=3072,t=1,p=4'
const USERNAME_CHARACTERS_MIN = 4
const USERNAME_CHARACTERS_MAX = 100

function convertPassword(record: StoredRecord, conversion: Conversion): void {
  const [username, hash, salt] = [
    record.text('updbUsername') ?? '',
    record.text('updbPassword') ?? '',
    record.text('updbSalt') ?? '',
  ]
  if (username === '' || !HASH.test(hash) || !SALT.test(salt)) {
    record.note('lost', 'updbPassword', 'user name, hash or salt are not those of a password')
    return
  }
  if (username.length < USERNAME_CHARACTERS_MIN || username.length > USERNAME_CHARACTERS_MAX) {
    const reason = `log-ins need ${USERNAME_CHARACTERS_MIN} to ${USERNAME_CHARACTERS_MAX} characters; change the name afterwards`
    record.note('decide', 'updbUsername', reason)
  }
  const unpadded = (base64: string): string => base64.replace(/=+$/, '')
  conversion.put('authenticator', record, {
    method: 'updb',
    identityId: record.text('identity') ?? '',
    username,
    passwordHash: `${ARGON2}$${unpadded(salt)}$${unpadded(hash)}`,
  })
}

function convertCertificate(record: StoredRecord, conversion: Conversion): void {
  const credential = certificateFieldsOf(record, conversion)
  if (credential === null) return
  const next = readNextCertificate(record, 'unverifiedCertFingerprint')
  conversion.put('authenticator', record, {
    method: 'cert',
    identityId: record.text('identity') ?? '',
    ...credential,
    isIssuedByNetwork: record.flag('isIssuedByNetwork'),
    ...(next === null
      ? {}
      : {
          nextCertPem: next.pem,
          nextFingerprint: next.certificate.sha1,
          nextPublicKeyPrint: toHex(next.certificate.publicKeySha256),
        }),
    extendRequestedAt: record.time('extendRequestedAt'),
    isExtendRequested: record.flag('isExtendRequested'),
    isKeyRollRequested: record.flag('isKeyRollRequested'),
    lastAuthResolvedToRoot: record.flag('lastAuthResolvedToRoot'),
    lastExtendRolledKeys: record.flag('lastExtendRolledKeys'),
  })
}

/**
 * Fields of a certificate authenticator; null, with a finding, if the record has an unreadable
 * certificate, or neither a certificate nor the SHA-1 of one.
 */
function certificateFieldsOf(record: StoredRecord, conversion: Conversion) {
  const pem = record.text('certPem') ?? ''
  const stored = record.text('certFingerprint') ?? ''
  if (pem === '') return adoptableFieldsOf(record, stored)
  const leaf = readCertificateWithSha1(record, 'certPem', pem, stored)
  if (leaf === null) return null
  if (stored.toLowerCase() !== leaf.sha1) {
    record.note('changed', 'certFingerprint', 'it was not that of certPem')
  }
  if (record.flag('isIssuedByNetwork')) checkIssuer(record, leaf, conversion)
  return {
    certPem: pem,
    fingerprint: leaf.sha1,
    publicKeyPrint: toHex(leaf.publicKeySha256),
    caId: record.flag('isIssuedByNetwork') ? '' : issuingAuthorityId(leaf, conversion),
  }
}

/**
 * Fields of an authenticator for which only the certificate's fingerprint is stored. The
 * fingerprint does not reveal the issuer, so the controller accepts the certificate at its first
 * use only if the network's own authority issued it.
 */
function adoptableFieldsOf(record: StoredRecord, stored: string) {
  const adoptable = toAdoptableFingerprint(stored)
  if (adoptable === null) {
    record.note('lost', 'certPem', 'it has neither a certificate nor the SHA-1 of one')
    return null
  }
  const reason =
    'the database has only its SHA-1; the first log-in stores it if the network issued it, and a certificate of another CA must enroll again'
  record.note('changed', 'certPem', reason)
  return { fingerprint: adoptable, adoptableFingerprint: adoptable }
}

/** SHA-1 as in the field `fingerprint` (40 hex digits); null if the string is not a SHA-1. */
export function toAdoptableFingerprint(text: string): string | null {
  const plain = text.replaceAll(':', '').toLowerCase()
  return /^[0-9a-f]{40}$/.test(plain) ? plain : null
}

export const enrollmentStore: StoreTable = {
  store: 'enrollments',
  kind: 'enrollment',
  why: '',
  rows: {
    token: unchangedFieldRule('text'),
    method: unchangedFieldRule('text'),
    identity: unchangedFieldRule('text'),
    edgeRouter: unchangedFieldRule('text'),
    transitRouter: unchangedFieldRule('text'),
    caId: unchangedFieldRule('text'),
    username: unchangedFieldRule('text'),
    expiresAt: convertedFieldRule('time', 'to milliseconds'),
    issuedAt: convertedFieldRule('time', 'is the time of creation as well'),
    jwt: unchangedFieldRule('text'),
    tags: unchangedFieldRule('map'),
  },
  convert: (record, conversion) => {
    const method = readChoiceOrNull(record, 'method', ['ott', 'ottca', 'updb', 'erott', 'trott'])
    const token = record.text('token') ?? ''
    const expiresAt = record.time('expiresAt')
    if (token === '' || expiresAt === null) {
      record.note('lost', 'token', 'the enrollment has no token or no end')
      return
    }
    if (method === null) return
    conversion.put('enrollment', record, {
      method,
      token,
      jwt: record.text('jwt') || null,
      expiresAt,
      identityId: record.text('identity') ?? '',
      edgeRouterId: record.text('edgeRouter') ?? '',
      transitRouterId: record.text('transitRouter') ?? '',
      caId: record.text('caId') ?? '',
      username: record.text('username') || null,
    })
  },
}

export const mfaStore: StoreTable = {
  store: 'mfas',
  kind: 'mfa',
  why: '',
  rows: {
    ...baseFieldRules,
    identity: convertedFieldRule('text', 'is the id of the record as well'),
    isVerified: unchangedFieldRule('boolean'),
    secret: convertedFieldRule('text', 'encrypted'),
    recoveryCodes: convertedFieldRule('texts', 'encrypted'),
    salt: droppedFieldRule('text', 'it is empty'),
  },
  convert: (record, conversion) => {
    const identityId = record.text('identity') ?? ''
    const secret = decodeBase32(record.text('secret') ?? '')
    if (identityId === '' || secret === null || secret.length === 0) {
      record.note('lost', 'secret', 'the second factor has no identity or no readable secret')
      return
    }
    const recoveryCodes = record.texts('recoveryCodes')
    conversion.putOther('mfa', record, identityId, {
      identityId,
      isVerified: record.flag('isVerified'),
      ...conversion.sealFactor(identityId, { secret, recoveryCodes }),
    })
  },
}
