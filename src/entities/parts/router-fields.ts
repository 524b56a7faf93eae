import {
  boolean,
  computed,
  notBuiltYetField,
  integer,
  nameText,
  object,
  optionalText,
  references,
  texts,
} from '../fields.ts'
import { withheld } from '../published.ts'
import { dateTime, flag, interfaceList, text } from '../shapes.ts'

const hidden = { shown: 'never' } as const
const nullableText = { type: ['string', 'null'] } as const
export const routerCostMax = 65_535

/** Control channel address to the groups it belongs to. */
const listeners = {
  type: 'object',
  maxProperties: 64,
  additionalProperties: { type: 'array', maxItems: 64, items: { type: 'string', maxLength: 512 } },
} as const

/** A certificate names at most so many (`REQUEST_NAMES_MAX`), each as long as a DNS name. */
const hosts = { since: 2, itemsMax: 64, charactersMax: 255 } as const

/** Fields of every router, whatever kind it is. */
export const routerFields = {
  name: nameText(),
  cost: integer({ maximum: routerCostMax }),
  noTraversal: boolean(),
  disabled: boolean(),
  ctrlChanListeners: object(listeners, {}, { shown: 'whenSet' }),
  configs: references('config', 'strip'),
  /**
   * Hosts that its server certificate may name, those of others among them; empty: those that it
   * enrolls with, but for those of others. Set by administrators alone.
   */
  allowedNames: texts(hosts),
  /** Hosts that its server certificate names, each in one spelling. */
  certificateNames: texts({ ...hosts, settable: 'never' }),
  interfaces: notBuiltYetField([], interfaceList),
} as const

/** Fields of a router that is enrolled by a one-time token. */
export const enrolledFields = {
  isOnline: computed({ from: 'routerStatus', shows: 'isOnline' }, flag),
  unverifiedCertPem: notBuiltYetField(null, nullableText),
  unverifiedFingerprint: notBuiltYetField(null, nullableText),
} as const

/**
 * The token that the router is still to be enrolled by: of the enrollment that names it by `by`.
 */
export function outstandingEnrollment(by: 'edgeRouterId' | 'transitRouterId') {
  const from = (field: string) => ({ from: 'fieldOfNaming', of: 'enrollment', by, field }) as const
  const whenSet = { shown: 'whenSet' } as const
  return {
    enrollmentToken: computed(from('token'), text, whenSet),
    enrollmentJwt: computed(from('jwt'), text, whenSet),
    enrollmentCreatedAt: computed(from('createdAt'), dateTime, whenSet),
    enrollmentExpiresAt: computed(from('expiresAt'), dateTime, whenSet),
  }
}

const program = { type: 'object', additionalProperties: text } as const
/** Clients of the API family look for its members also where the router has never come. */
export const versionInfoOrEmpty = computed(
  { from: 'routerStatus', shows: 'versionInfoOrEmpty' },
  program,
)
export const shownVersion = computed({ from: 'routerStatus', shows: 'version' }, text, {
  shown: 'whenSet',
})
/** Capabilities by their names, as far as clients make use of them. */
export const capabilities = computed(
  { from: 'routerStatus', shows: 'capabilities' },
  { type: 'array', items: text },
)
export const capabilitiesMask = computed(
  { from: 'routerStatus', shows: 'capabilitiesMask' },
  { type: 'integer' },
)

/** Version of its program, while it is connected. */
export const versionInfo = computed({ from: 'routerStatus', shows: 'versionInfo' }, program, {
  shown: 'whenSet',
})

/** Fingerprint of the certificate that it enrolled with; null before. */
export const uniqueFingerprint = {
  settable: 'proposer',
  charactersMax: 128,
  unique: 'fingerprint must be unique',
} as const

/**
 * Any router, as `/routers` and `/transit-routers` show it; those made elsewhere count as enrolled.
 */
export const transitFields = {
  ...routerFields,
  ...enrolledFields,
  ...outstandingEnrollment('transitRouterId'),
  fingerprint: optionalText(uniqueFingerprint),
  isVerified: boolean({
    settable: 'proposer',
    shownAs: { from: 'anyFlag', of: { isVerified: true, isTransit: false } },
  }),
  certPem: optionalText({ settable: 'proposer', charactersMax: 65_536, ...hidden }),
  ...withheld({
    /**
     * Issued beside `certPem` at the enrollment; kept for a router that lost the answer and asks
     * again.
     */
    serverCertPem: optionalText({ settable: 'never', charactersMax: 65_536, ...hidden }),
    /**
     * Certificates that take the place of those in force once the router has shown that it has
     * them.
     */
    nextCertPem: optionalText({ settable: 'never', charactersMax: 65_536, ...hidden }),
    nextServerCertPem: optionalText({ settable: 'never', charactersMax: 65_536, ...hidden }),
    nextFingerprint: optionalText({ settable: 'never', ...hidden }),
    nextCertificateNames: texts({ ...hosts, settable: 'never', ...hidden }),
    /** SHA-256 of the one-time token that it was enrolled by, hex. */
    enrolledBy: optionalText({ settable: 'never', unique: 'a token is used once', ...hidden }),
  }),
  /** It was made by `/routers` or `/transit-routers`, and can be changed there. */
  isTransit: boolean({ settable: 'proposer', ...hidden }),
} as const

export const routerSymbols = [
  'name',
  'fingerprint',
  'cost',
  'noTraversal',
  'disabled',
  'ctrlChanListeners',
  'configs',
] as const

export const connectedSymbol = { name: 'connected', live: 'isOnline', type: 'boolean' } as const
