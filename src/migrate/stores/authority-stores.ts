/**
 * CAs, external JWT signers and authentication policies. Source: ziti 804f55abb,
 * controller/db/ca_store.go:25-176, auth_policy_store.go:24-48,
 * external_jwt_signer_store.go:31-195.
 */
import { isLoopbackHost } from '../../pki/authority/router-names.ts'
import {
  CLAIM_POINTERS_VERSION,
  readChoiceOrFirst,
  type Conversion,
  readChoiceOrNull,
  type StoreTable,
} from './conversion.ts'
import {
  baseFieldRules,
  unchangedFieldRule,
  convertedFieldRule,
  linkFieldRule,
} from './stored-field-rules.ts'
import { parseStoredCertificate } from './stored-certificate.ts'
import type { StoredRecord } from './stored-record.ts'

const claim = 'externalIdClaim'
const claimLocations = ['COMMON_NAME', 'SAN_URI', 'SAN_EMAIL'] as const
const claimMatchers = ['ALL', 'PREFIX', 'SUFFIX', 'SCHEME'] as const
const claimParsers = ['NONE', 'SPLIT'] as const

export const caStore: StoreTable = {
  store: 'cas',
  kind: 'ca',
  why: '',
  rows: {
    ...baseFieldRules,
    name: unchangedFieldRule('text'),
    certPem: unchangedFieldRule('text'),
    fingerprint: convertedFieldRule('text', 'computed from certPem'),
    isVerified: unchangedFieldRule('boolean'),
    verificationToken: unchangedFieldRule('text'),
    isAutoCaEnrollmentEnabled: unchangedFieldRule('boolean'),
    isOttCaEnrollmentEnabled: unchangedFieldRule('boolean'),
    isAuthEnabled: unchangedFieldRule('boolean'),
    identityRoles: unchangedFieldRule('texts'),
    identityNameFormat: unchangedFieldRule('text'),
    externalIdClaim: unchangedFieldRule('section', {
      fields: {
        [`${claim}.location`]: unchangedFieldRule('text'),
        [`${claim}.matcher`]: unchangedFieldRule('text'),
        [`${claim}.matcherCriteria`]: unchangedFieldRule('text'),
        [`${claim}.parser`]: unchangedFieldRule('text'),
        [`${claim}.parserSeparator`]: convertedFieldRule('text', 'is parserCriteria here'),
        [`${claim}.index`]: unchangedFieldRule('int64'),
      },
    }),
    enrollments: linkFieldRule,
  },
  convert: (record, conversion) => {
    const pem = record.text('certPem') ?? ''
    const certificate = parseStoredCertificate(record, 'certPem', pem)
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
  const location = readChoiceOrNull(section, `${claim}.location`, claimLocations)
  const matcher = readChoiceOrNull(section, `${claim}.matcher`, claimMatchers)
  const parser = readChoiceOrNull(section, `${claim}.parser`, claimParsers)
  // Drops a claim with unknown values instead of replacing them, because a different claim could
  // select the id of another identity.
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

export const authPolicyStore: StoreTable = {
  store: 'authPolicies',
  kind: 'authPolicy',
  why: '',
  rows: {
    ...baseFieldRules,
    name: unchangedFieldRule('text'),
    'primary.cert.allowed': unchangedFieldRule('boolean'),
    'primary.cert.allowExpiredCerts': unchangedFieldRule('boolean'),
    'primary.updb.allowed': unchangedFieldRule('boolean'),
    'primary.updb.minPasswordLength': unchangedFieldRule('int64'),
    'primary.updb.requireSpecialChar': unchangedFieldRule('boolean'),
    'primary.updb.requireNumberChar': unchangedFieldRule('boolean'),
    'primary.updb.requireMixedCase': unchangedFieldRule('boolean'),
    'primary.updb.maxAttempts': unchangedFieldRule('int64'),
    'primary.updb.lockoutDurationMinutes': unchangedFieldRule('int64'),
    'primary.extJwt.allowed': unchangedFieldRule('boolean'),
    'primary.extJwt.allowedSigners': unchangedFieldRule('texts'),
    'secondary.requireTotp': unchangedFieldRule('boolean'),
    'secondary.requireExtJwtSigner': unchangedFieldRule('text'),
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

export const externalJwtSignerStore: StoreTable = {
  store: 'externalJwtSigners',
  kind: 'externalJwtSigner',
  why: '',
  rows: {
    ...baseFieldRules,
    name: unchangedFieldRule('text'),
    issuer: unchangedFieldRule('text'),
    audience: unchangedFieldRule('text'),
    certPem: unchangedFieldRule('text'),
    jwksEndpoint: unchangedFieldRule('text'),
    fingerprint: convertedFieldRule('text', 'computed from certPem'),
    kid: unchangedFieldRule('text'),
    commonName: convertedFieldRule('text', 'computed from certPem'),
    notBefore: convertedFieldRule('time', 'computed from certPem'),
    notAfter: convertedFieldRule('time', 'computed from certPem'),
    enabled: unchangedFieldRule('boolean'),
    externalAuthUrl: unchangedFieldRule('text'),
    useExternalId: unchangedFieldRule('boolean'),
    clientId: unchangedFieldRule('text'),
    scopes: unchangedFieldRule('texts'),
    targetToken: unchangedFieldRule('text'),
    claimsProperty: convertedFieldRule('text', 'to a JSON pointer, before 2.0'),
    enrollToCertEnabled: unchangedFieldRule('boolean', { since: '2.0' }),
    enrollToTokenEnabled: unchangedFieldRule('boolean', { since: '2.0' }),
    enrollAttributeClaimsSelector: unchangedFieldRule('text', { since: '2.0' }),
    enrollNameClaimsSelector: unchangedFieldRule('text', { since: '2.0' }),
    enrollAuthPolicyId: unchangedFieldRule('text', { since: '2.0' }),
    authPolicies: linkFieldRule,
  },
  convert: (record, conversion) => {
    const certPem = record.text('certPem') || null
    const certificate = certPem === null ? null : parseStoredCertificate(record, 'certPem', certPem)
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
      targetToken: readChoiceOrFirst(record, 'targetToken', ['ACCESS', 'ID']),
      commonName: certificate?.commonName ?? '',
      fingerprint: certificate?.sha1 ?? '',
      notBefore: certificate?.notBeforeMs ?? null,
      notAfter: certificate?.notAfterMs ?? null,
    })
  },
}

/**
 * The claim as a JSON pointer. Versions before 2.0 store a plain name, in which `~` and `/` have no
 * special meaning. Version 1.7.2 has the same schema version as 2.0, so from that schema version
 * on, a leading slash decides.
 */
function pointerOf(property: string, { version }: Conversion): string {
  if (version >= CLAIM_POINTERS_VERSION && property.startsWith('/')) return property
  if (version < CLAIM_POINTERS_VERSION && property === '/sub') return property
  return `/${property.replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/**
 * Reports invalid addresses, and those from which Flotilla does not fetch keys unless an option
 * allows it: addresses without TLS, and loopback addresses.
 */
function noteAddress(record: StoredRecord): void {
  const text = record.text('jwksEndpoint') ?? ''
  if (text === '') return
  const url = URL.parse(text)
  if (url === null) record.note('decide', 'jwksEndpoint', 'it is no address; correct it afterwards')
  else if (url.protocol !== 'https:' || isLoopbackHost(url.hostname)) {
    const reason =
      'keys are fetched over HTTPS from other hosts only, unless the configuration allows it'
    record.note('decide', 'jwksEndpoint', reason)
  }
}
