/**
 * CAs, external JWT signers and authentication policies. Source: ziti 804f55abb,
 * controller/db/ca_store.go:25-176, auth_policy_store.go:24-48,
 * external_jwt_signer_store.go:31-195.
 */
import { isLoopback } from '../../pki/authority/router-names.ts'
import {
  CLAIM_POINTERS_VERSION,
  choiceOrFirst,
  type Conversion,
  choiceOrNull,
  type StoreTable,
} from './conversion.ts'
import { baseRows, migratedUnchanged, converted, linkRow } from './field-rows.ts'
import { certificateOf } from './identity-stores.ts'
import type { StoredRecord } from './stored-record.ts'

const claim = 'externalIdClaim'
const claimLocations = ['COMMON_NAME', 'SAN_URI', 'SAN_EMAIL'] as const
const claimMatchers = ['ALL', 'PREFIX', 'SUFFIX', 'SCHEME'] as const
const claimParsers = ['NONE', 'SPLIT'] as const

export const cas: StoreTable = {
  store: 'cas',
  kind: 'ca',
  why: '',
  rows: {
    ...baseRows,
    name: migratedUnchanged('text'),
    certPem: migratedUnchanged('text'),
    fingerprint: converted('text', 'computed from certPem'),
    isVerified: migratedUnchanged('boolean'),
    verificationToken: migratedUnchanged('text'),
    isAutoCaEnrollmentEnabled: migratedUnchanged('boolean'),
    isOttCaEnrollmentEnabled: migratedUnchanged('boolean'),
    isAuthEnabled: migratedUnchanged('boolean'),
    identityRoles: migratedUnchanged('texts'),
    identityNameFormat: migratedUnchanged('text'),
    externalIdClaim: migratedUnchanged('section', {
      fields: {
        [`${claim}.location`]: migratedUnchanged('text'),
        [`${claim}.matcher`]: migratedUnchanged('text'),
        [`${claim}.matcherCriteria`]: migratedUnchanged('text'),
        [`${claim}.parser`]: migratedUnchanged('text'),
        [`${claim}.parserSeparator`]: converted('text', 'is parserCriteria here'),
        [`${claim}.index`]: migratedUnchanged('int64'),
      },
    }),
    enrollments: linkRow,
  },
  convert: (record, conversion) => {
    const pem = record.text('certPem') ?? ''
    const certificate = certificateOf(record, 'certPem', pem)
    if (certificate === null) return
    conversion.authorities.set(record.id, certificate)
    const isVerified = record.flag('isVerified')
    if (!isVerified) {
      const reason =
        'the CA is not verified; the controllers of a cluster have different tokens, and the one of this database is kept'
      record.note('decide', 'verificationToken', reason)
    }
    conversion.put('ca', record, {
      name: record.text('name') ?? '',
      certPem: pem,
      fingerprint: certificate.sha1,
      identityNameFormat: record.text('identityNameFormat') || '[caName]-[commonName]',
      identityRoles: record.texts('identityRoles'),
      isAuthEnabled: record.flag('isAuthEnabled'),
      isAutoCaEnrollmentEnabled: record.flag('isAutoCaEnrollmentEnabled'),
      isOttCaEnrollmentEnabled: record.flag('isOttCaEnrollmentEnabled'),
      isVerified,
      verificationToken: record.text('verificationToken') ?? '',
      externalIdClaim: claimOf(record.section(claim)),
    })
  },
}

function claimOf(section: StoredRecord | null) {
  if (section === null || !section.has(`${claim}.location`)) return null
  const location = choiceOrNull(section, `${claim}.location`, claimLocations)
  const matcher = choiceOrNull(section, `${claim}.matcher`, claimMatchers)
  const parser = choiceOrNull(section, `${claim}.parser`, claimParsers)
  // Not migrated with other values, because another claim could contain another identity's id.
  if (location === null || matcher === null || parser === null) return null
  return {
    index: section.integer(`${claim}.index`),
    location,
    matcher,
    matcherCriteria: section.text(`${claim}.matcherCriteria`) ?? '',
    parser,
    parserCriteria: section.text(`${claim}.parserSeparator`) ?? '',
  }
}

export const authPolicies: StoreTable = {
  store: 'authPolicies',
  kind: 'authPolicy',
  why: '',
  rows: {
    ...baseRows,
    name: migratedUnchanged('text'),
    'primary.cert.allowed': migratedUnchanged('boolean'),
    'primary.cert.allowExpiredCerts': migratedUnchanged('boolean'),
    'primary.updb.allowed': migratedUnchanged('boolean'),
    'primary.updb.minPasswordLength': migratedUnchanged('int64'),
    'primary.updb.requireSpecialChar': migratedUnchanged('boolean'),
    'primary.updb.requireNumberChar': migratedUnchanged('boolean'),
    'primary.updb.requireMixedCase': migratedUnchanged('boolean'),
    'primary.updb.maxAttempts': migratedUnchanged('int64'),
    'primary.updb.lockoutDurationMinutes': migratedUnchanged('int64'),
    'primary.extJwt.allowed': migratedUnchanged('boolean'),
    'primary.extJwt.allowedSigners': migratedUnchanged('texts'),
    'secondary.requireTotp': migratedUnchanged('boolean'),
    'secondary.requireExtJwtSigner': migratedUnchanged('text'),
  },
  convert: (record, conversion) => {
    const signers = record.texts('primary.extJwt.allowedSigners')
    const required = record.text('secondary.requireExtJwtSigner') || null
    conversion.put('authPolicy', record, {
      name: record.text('name') ?? '',
      isSystem: record.flag('isSystem'),
      primary: {
        cert: {
          allowed: record.flag('primary.cert.allowed', true),
          allowExpiredCerts: record.flag('primary.cert.allowExpiredCerts', true),
        },
        extJwt: { allowed: record.flag('primary.extJwt.allowed', true), allowedSigners: signers },
        updb: {
          allowed: record.flag('primary.updb.allowed', true),
          lockoutDurationMinutes: record.integer('primary.updb.lockoutDurationMinutes'),
          maxAttempts: record.integer('primary.updb.maxAttempts', 5),
          minPasswordLength: passwordLengthOf(record),
          requireMixedCase: record.flag('primary.updb.requireMixedCase'),
          requireNumberChar: record.flag('primary.updb.requireNumberChar'),
          requireSpecialChar: record.flag('primary.updb.requireSpecialChar'),
        },
      },
      secondary: {
        requireTotp: record.flag('secondary.requireTotp'),
        requireExtJwtSigner: required,
      },
      allowedSignerIds: signers,
      requiredSignerIds: required === null ? [] : [required],
    })
  },
}

const PASSWORD_CHARACTERS_MIN = 5
const PASSWORD_CHARACTERS_MAX = 100

/**
 * Minimum password length. Flotilla enforces the minimum when a password is set; OpenZiti only
 * stores it.
 */
function passwordLengthOf(record: StoredRecord): number {
  const name = 'primary.updb.minPasswordLength'
  const stored = record.integer(name, PASSWORD_CHARACTERS_MIN)
  const kept = Math.min(PASSWORD_CHARACTERS_MAX, Math.max(PASSWORD_CHARACTERS_MIN, stored))
  if (kept !== stored) record.note('changed', name, `passwords have 5 to 100 characters`)
  return kept
}

export const externalJwtSigners: StoreTable = {
  store: 'externalJwtSigners',
  kind: 'externalJwtSigner',
  why: '',
  rows: {
    ...baseRows,
    name: migratedUnchanged('text'),
    issuer: migratedUnchanged('text'),
    audience: migratedUnchanged('text'),
    certPem: migratedUnchanged('text'),
    jwksEndpoint: migratedUnchanged('text'),
    fingerprint: converted('text', 'computed from certPem'),
    kid: migratedUnchanged('text'),
    commonName: converted('text', 'computed from certPem'),
    notBefore: converted('time', 'computed from certPem'),
    notAfter: converted('time', 'computed from certPem'),
    enabled: migratedUnchanged('boolean'),
    externalAuthUrl: migratedUnchanged('text'),
    useExternalId: migratedUnchanged('boolean'),
    clientId: migratedUnchanged('text'),
    scopes: migratedUnchanged('texts'),
    targetToken: migratedUnchanged('text'),
    claimsProperty: converted('text', 'to a JSON pointer, before 2.0'),
    enrollToCertEnabled: migratedUnchanged('boolean', { since: '2.0' }),
    enrollToTokenEnabled: migratedUnchanged('boolean', { since: '2.0' }),
    enrollAttributeClaimsSelector: migratedUnchanged('text', { since: '2.0' }),
    enrollNameClaimsSelector: migratedUnchanged('text', { since: '2.0' }),
    enrollAuthPolicyId: migratedUnchanged('text', { since: '2.0' }),
    authPolicies: linkRow,
  },
  convert: (record, conversion) => {
    const certPem = record.text('certPem') || null
    const certificate = certPem === null ? null : certificateOf(record, 'certPem', certPem)
    if (certPem !== null && certificate === null) return
    noteAddress(record)
    conversion.put('externalJwtSigner', record, {
      name: record.text('name') ?? '',
      enabled: record.flag('enabled'),
      issuer: record.text('issuer') ?? '',
      audience: record.text('audience') ?? '',
      certPem,
      jwksEndpoint: record.text('jwksEndpoint') || null,
      kid: record.text('kid') ?? '',
      claimsProperty: pointerOf(record.text('claimsProperty') || '/sub', conversion),
      useExternalId: record.flag('useExternalId'),
      enrollAuthPolicyId: record.text('enrollAuthPolicyId') || 'default',
      enrollNameClaimsSelector: record.text('enrollNameClaimsSelector') || '/sub',
      enrollAttributeClaimsSelector: record.text('enrollAttributeClaimsSelector') ?? '',
      enrollToCertEnabled: record.flag('enrollToCertEnabled'),
      enrollToTokenEnabled: record.flag('enrollToTokenEnabled'),
      externalAuthUrl: record.text('externalAuthUrl') ?? '',
      clientId: record.text('clientId') ?? '',
      scopes: record.texts('scopes'),
      targetToken: choiceOrFirst(record, 'targetToken', ['ACCESS', 'ID']),
      commonName: certificate?.commonName ?? '',
      fingerprint: certificate?.sha1 ?? '',
      notBefore: certificate?.notBeforeMs ?? null,
      notAfter: certificate?.notAfterMs ?? null,
    })
  },
}

/**
 * The claim as a JSON pointer. Versions before 2.0 store a plain name, in which `~` and `/` have no
 * special meaning. Version 1.7.2 has the same schema version as 2.0, so for that schema version a
 * leading slash decides.
 */
function pointerOf(property: string, { version }: Conversion): string {
  if (version >= CLAIM_POINTERS_VERSION && property.startsWith('/')) return property
  if (version < CLAIM_POINTERS_VERSION && property === '/sub') return property
  return `/${property.replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/**
 * Reports addresses from which Flotilla will not fetch keys: only HTTPS is used, and this host only
 * if an option allows it.
 */
function noteAddress(record: StoredRecord): void {
  const text = record.text('jwksEndpoint') ?? ''
  if (text === '') return
  const url = URL.parse(text)
  if (url === null) record.note('decide', 'jwksEndpoint', 'it is no address; correct it afterwards')
  else if (url.protocol !== 'https:' || isLoopback(url.hostname)) {
    const reason =
      'keys are fetched over HTTPS from other hosts only, unless the configuration allows it'
    record.note('decide', 'jwksEndpoint', reason)
  }
}
