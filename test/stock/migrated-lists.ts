import { seededConfigTypes } from '../../src/fsm/seed/seed-config-types.ts'
import { type Json, type JsonObject, isSameJson } from '../../src/lib/text/canonical-json.ts'

/** Lists for which the recording contains OpenZiti's answers, by the name of the file. */
export const comparedLists = [
  'identities',
  'authenticators',
  'enrollments',
  'cas',
  'auth-policies',
  'external-jwt-signers',
  'services',
  'configs',
  'config-types',
  'service-policies',
  'edge-router-policies',
  'service-edge-router-policies',
  'posture-checks',
  'posture-check-types',
  'identity-types',
  'routers',
  'transit-routers',
  'edge-routers',
  'terminators',
  'fabric-routers',
  'fabric-services',
  'fabric-terminators',
] as const
export type ComparedList = (typeof comparedLists)[number]

export function listPath(list: ComparedList): string {
  const fabric = /^fabric-(.*)$/.exec(list)?.[1]
  const place = fabric === undefined ? `edge/management/v1/${list}` : `fabric/v1/${fabric}`
  return `/${place}?limit=500`
}

/** A value that differs between OpenZiti's answers and the answers after the migration. */
export interface Difference {
  readonly list: ComparedList
  readonly id: string
  /**
   * For example `tags.floor` or `servicesPolicies[0].name`; empty: only one of the answers contains
   * the record.
   */
  readonly path: string
  readonly before: Json | undefined
  readonly after: Json | undefined
}

interface KnownDifference {
  readonly why: string
  readonly matches: (difference: Difference) => boolean
}

/** Every difference between the answers, record by record. */
export function differences(list: ComparedList, before: Json, after: Json): Difference[] {
  const [old, now] = [byId(before), byId(after)]
  const found: Difference[] = []
  for (const id of new Set([...old.keys(), ...now.keys()])) {
    const [was, is] = [old.get(id), now.get(id)]
    if (was === undefined || is === undefined) {
      found.push({ list, id, path: '', before: was, after: is })
    } else addDifferences({ list, id }, '', was, is, found)
  }
  return found
}

function byId(answer: Json): Map<string, JsonObject> {
  const records = Array.isArray(answer) ? (answer as readonly JsonObject[]) : []
  return new Map(records.map((record) => [String(record['id']), record]))
}

function addDifferences(
  place: Pick<Difference, 'list' | 'id'>,
  path: string,
  before: Json | undefined,
  after: Json | undefined,
  found: Difference[],
): void {
  if (isSameJson(before, after)) return
  if (isMap(before) && isMap(after)) {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const inner = path === '' ? name : `${path}.${name}`
      addDifferences(place, inner, before[name], after[name], found)
    }
    return
  }
  found.push({ ...place, path, before, after })
}

function isMap(value: Json | undefined): value is JsonObject {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}

function isEmpty(value: Json | undefined): boolean {
  if (value === undefined || value === null || value === '' || value === false) return true
  if (Array.isArray(value)) return value.length === 0
  return typeof value === 'object' && Object.keys(value).length === 0
}

/** Fields about connections; no connection exists yet. */
const live: ReadonlySet<string> = new Set([
  'capabilities',
  'capabilitiesMask',
  'connected',
  'dynamicCost',
  'edgeRouterConnectionStatus',
  'hasApiSession',
  'hasEdgeRouterConnection',
  'hostname',
  'interfaces',
  'isOnline',
  'listenerAddresses',
  'supportedProtocols',
  'syncStatus',
  'version',
  'versionInfo',
])

/** Lists of records that every network of this program has in the same form. */
const common: ReadonlySet<ComparedList> = new Set(['posture-check-types', 'identity-types'])
const ZERO_TIME = '0001-01-01T00:00:00.000Z'

/**
 * Reasons why a value may differ. Any difference that no row matches is a fault of the migration.
 */
export const knownDifferences: readonly KnownDifference[] = [
  {
    why: 'OpenZiti shows null, an empty list or nothing for the same unset value',
    matches: ({ path, before, after }) =>
      path !== '' &&
      ((isEmpty(before) && isEmpty(after)) ||
        isSameJson(withoutUnset(before ?? null), withoutUnset(after ?? null))),
  },
  {
    why: 'nothing is connected yet',
    matches: ({ list, path }) =>
      /router|terminator|identities/.test(list) && live.has(path.split('.')[0] ?? ''),
  },
  {
    why: 'OpenZiti has no times of enrollments, and here they are the time of issue',
    matches: ({ path, before }) =>
      before === ZERO_TIME && /^(enrollmentCreatedAt|createdAt|updatedAt)$/.test(path),
  },
  {
    why: 'a time that is not set is null here',
    matches: ({ before, after }) => before === ZERO_TIME && isEmpty(after),
  },
  {
    why: 'answers about enrollments show more here',
    matches: ({ list, path, before }) =>
      list === 'enrollments' &&
      before === undefined &&
      ['identity.urlName', 'ca', 'username'].includes(path),
  },
  {
    why: 'the token that another member made for the enrollment of a router is a record',
    matches: ({ list, id, path, before }) =>
      list === 'enrollments' && path === '' && before === undefined && /\.[2-9]$/.test(id),
  },
  {
    why: 'the token of a verified CA is not shown',
    matches: ({ list, path, after }) =>
      list === 'cas' && path === 'verificationToken' && after === undefined,
  },
  {
    why: 'config types that every network has keep the schema of this program',
    matches: ({ list, id, path }) =>
      list === 'config-types' &&
      path.startsWith('schema') &&
      seededConfigTypes.some((seed) => seed.id === id),
  },
  {
    why: 'these records are those of a new network',
    matches: ({ list }) => common.has(list),
  },
  {
    why: 'a router has the path of its list',
    matches: ({ list, path }) => list === 'routers' && path === '_links.self.href',
  },
  {
    why: 'this program knows the names in the certificate of a router',
    matches: ({ path, before }) =>
      before === undefined && ['allowedNames', 'certificateNames'].includes(path),
  },
  {
    why: 'OpenZiti does not report when an identity was last seen; here the administrator logged in',
    matches: ({ list, path, before }) =>
      list === 'identities' && path === 'lastSeenAt' && before === undefined,
  },
  {
    why: 'a router that is known by the SHA-1 alone shows that its certificate is still to be stored',
    matches: ({ path, before }) => path === 'adoptableFingerprint' && before === undefined,
  },
  {
    why: 'the edge API shows no terminators of fabric-only services; the fabric API does',
    matches: ({ list, path, before, after }) =>
      list === 'terminators' &&
      path === '' &&
      after === undefined &&
      serviceOf(before) === 'fabric-only',
  },
  {
    why: 'a terminator that a router made for a client is left out, and the client binds again',
    matches: ({ list, path, before, after }) =>
      list.endsWith('terminators') &&
      path === '' &&
      after === undefined &&
      (before as JsonObject | undefined)?.['binding'] === 'edge',
  },
]

/** Name of the service of a terminator. */
function serviceOf(terminator: Json | undefined): Json | undefined {
  const service = (terminator as JsonObject | undefined)?.['service']
  return (service as JsonObject | undefined)?.['name']
}

/** The value without members that are unset, at any depth. */
function withoutUnset(value: Json): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map(withoutUnset)
  if (!isMap(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => !isEmpty(member))
      .map(([name, member]) => [name, withoutUnset(member)]),
  )
}
