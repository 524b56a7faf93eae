import {
  booleanField,
  computedField,
  integerField,
  nameField,
  objectField,
  optionalTextField,
  idReferencesField,
  textListField,
  timestampField,
} from '../fields.ts'
import { markHiddenFromEvents } from '../event-visibility.ts'
import {
  dateTimeSchema,
  booleanSchema,
  interfaceListSchema,
  textSchema,
} from '../response-schemas.ts'

const hidden = { shown: 'never' } as const
const nullableText = { type: ['string', 'null'] } as const
export const routerCostMax = 65_535

/** Schema of control channel listeners: address → groups to which the address belongs. */
const listeners = {
  type: 'object',
  maxProperties: 64,
  additionalProperties: { type: 'array', maxItems: 64, items: { type: 'string', maxLength: 512 } },
} as const

/**
 * Limits of host lists, equal to those of a certificate: at most this many names
 * (`REQUEST_NAMES_MAX`), each at most as long as a DNS name.
 */
const hosts = { since: 2, itemsMax: 64, charactersMax: 255 } as const

/**
 * Network interfaces that the router whose id equals the record's id reports; null while the router
 * reports none.
 */
export const interfacesField = computedField(
  { from: 'routerStatus', shows: 'interfaces' },
  interfaceListSchema,
  {
    nullIfEmpty: true,
  },
)

const ofSystem = { since: 3, settable: 'never' } as const

/**
 * Since when the router is connected to a controller (`onlineSince`), or connected to none
 * (`offlineSince`); at most one of the two fields is set. Both fields are written to the log with a
 * delay.
 */
const presence = {
  onlineSince: timestampField({
    ...ofSystem,
    shownAs: { from: 'routerPresence', shows: 'onlineSince' },
  }),
  offlineSince: timestampField({
    ...ofSystem,
    shownAs: { from: 'routerPresence', shows: 'offlineSince' },
  }),
} as const

/** Fields that every kind of router has. */
export const commonRouterFields = {
  name: nameField(),
  cost: integerField({ maximum: routerCostMax }),
  noTraversal: booleanField(),
  disabled: booleanField(),
  ctrlChanListeners: objectField(listeners, {}, { shown: 'whenSet' }),
  configs: idReferencesField('config', 'strip', { nullIfEmpty: true }),
  /**
   * If the list is not empty, the router's server certificate may contain only these hosts and
   * loopback names; the list may name hosts of other routers and of controllers. If it is empty,
   * the certificate may contain the hosts in the router's enrollment request, except hosts of other
   * routers, hosts of controllers and wildcards. Through the API, only administrators can set this
   * field. If it is empty when a migrated router adopts its certificate, a controller sets it to
   * the hosts in that certificate, except loopback names and hosts of controllers.
   */
  allowedNames: textListField(hosts),
  /** Hosts in the router's server certificate, each normalized. */
  certificateNames: textListField({ ...hosts, settable: 'never' }),
  /**
   * SHA-1 of a migrated certificate; the certificate itself is stored at the router's first
   * connection.
   */
  adoptableFingerprint: optionalTextField({ since: 3, settable: 'proposer', shown: 'whenSet' }),
  ...presence,
  interfaces: interfacesField,
} as const

/** Fields of a router that is enrolled by a one-time token. */
export const enrolledRouterFields = {
  isOnline: computedField({ from: 'routerStatus', shows: 'isOnline' }, booleanSchema),
  /** Certificate that was issued to the router, but that the router has not used yet. */
  unverifiedCertPem: computedField({ from: 'field', field: 'nextCertPem' }, nullableText),
  unverifiedFingerprint: computedField({ from: 'field', field: 'nextFingerprint' }, nullableText),
} as const

/**
 * Token of the router's open enrollment. `by` is the field of the enrollment that references the
 * router.
 */
export function outstandingEnrollmentFields(by: 'edgeRouterId' | 'transitRouterId') {
  const from = (field: string) => ({ from: 'fieldOfNaming', of: 'enrollment', by, field }) as const
  const whenSet = { shown: 'whenSet' } as const
  return {
    enrollmentToken: computedField(from('token'), textSchema, whenSet),
    enrollmentJwt: computedField(from('jwt'), textSchema, whenSet),
    enrollmentCreatedAt: computedField(from('createdAt'), dateTimeSchema, whenSet),
    enrollmentExpiresAt: computedField(from('expiresAt'), dateTimeSchema, whenSet),
  }
}

const program = { type: 'object', additionalProperties: textSchema } as const
/**
 * Version info that is an object even if the router has never connected, because OpenZiti clients
 * read its members.
 */
export const versionInfoOrEmptyField = computedField(
  { from: 'routerStatus', shows: 'versionInfoOrEmpty' },
  program,
)
export const routerVersionField = computedField(
  { from: 'routerStatus', shows: 'version' },
  textSchema,
  {
    shown: 'whenSet',
  },
)
/** Names of those capabilities of the router that concern clients. */
export const capabilityNamesField = computedField(
  { from: 'routerStatus', shows: 'capabilities' },
  { type: 'array', items: textSchema },
)
export const capabilitiesMaskField = computedField(
  { from: 'routerStatus', shows: 'capabilitiesMask' },
  { type: 'integer' },
)

/** Version of the router's program; set only while the router is connected. */
export const versionInfoField = computedField(
  { from: 'routerStatus', shows: 'versionInfo' },
  program,
  {
    shown: 'whenSet',
  },
)

/**
 * Rules of the field `fingerprint`, which contains the SHA-1 of the router's certificate; null
 * before enrollment, unless the fabric API set it.
 */
export const routerFingerprintFieldRules = {
  settable: 'proposer',
  charactersMax: 128,
  unique: 'fingerprint must be unique',
} as const

/**
 * Any router, as `/routers` and `/transit-routers` show it; routers that were created at
 * `/edge-routers` or through the fabric API count as enrolled (`isVerified`).
 */
export const anyRouterFields = {
  ...commonRouterFields,
  ...enrolledRouterFields,
  ...outstandingEnrollmentFields('transitRouterId'),
  fingerprint: optionalTextField(routerFingerprintFieldRules),
  isVerified: booleanField({
    settable: 'proposer',
    shownAs: { from: 'anyFlag', of: { isVerified: true, isTransit: false } },
  }),
  certPem: optionalTextField({ settable: 'proposer', charactersMax: 65_536, ...hidden }),
  ...markHiddenFromEvents({
    /**
     * Issued together with `certPem` at enrollment. A router that did not receive the response
     * repeats its request and gets this certificate again.
     */
    serverCertPem: optionalTextField({ settable: 'never', charactersMax: 65_536, ...hidden }),
    /** Certificates that replace the current ones once the router has connected with them. */
    nextCertPem: optionalTextField({ settable: 'never', charactersMax: 65_536, ...hidden }),
    nextServerCertPem: optionalTextField({ settable: 'never', charactersMax: 65_536, ...hidden }),
    nextFingerprint: optionalTextField({ settable: 'never', ...hidden }),
    nextCertificateNames: textListField({ ...hosts, settable: 'never', ...hidden }),
    /** SHA-256 of the one-time token with which the router enrolled, hex. */
    enrolledBy: optionalTextField({ settable: 'never', unique: 'a token is used once', ...hidden }),
  }),
  /**
   * Whether the router was created by `/routers` or `/transit-routers`, and can be changed there.
   */
  isTransit: booleanField({ settable: 'proposer', ...hidden }),
} as const

export const routerSymbols = [
  'name',
  'fingerprint',
  'cost',
  'noTraversal',
  'disabled',
  'ctrlChanListeners',
  'configs',
  { name: 'onlineSince', live: 'onlineSince', type: 'datetime' },
  { name: 'offlineSince', live: 'offlineSince', type: 'datetime' },
] as const

export const connectedSymbol = { name: 'connected', live: 'isOnline', type: 'boolean' } as const
