import { DAY_MS } from '../../controls/expiry.ts'

/** Data outside the list that the filter of an option may use. */
export interface FilterContext {
  readonly nowMs: number
  /** IDs of the routers that are not connected, if a chosen facet uses them. */
  readonly offlineRouterIds: readonly string[]
}

/** A choice by which the user can narrow a list. */
export interface ListFacet {
  readonly name: string
  readonly label: string
  readonly options: readonly {
    readonly value: string
    readonly text: string
    /** Returns the API filter of this option. */
    readonly filter: (context: FilterContext) => string
  }[]
  /** The option that narrows the list until the user chooses another one. */
  readonly usual?: {
    readonly value: string
    /** Text of the link that removes this filter, for a list without rows. */
    readonly showAll: string
  }
  /** True: its filters use the routers that are offline. */
  readonly usesOfflineRouters?: boolean
}

function createFacet(
  name: string,
  label: string,
  ...options: readonly (readonly [
    value: string,
    text: string,
    filter: string | ListFacet['options'][number]['filter'],
  ])[]
): ListFacet {
  return {
    name,
    label,
    options: options.map(([value, text, filter]) => ({
      value,
      text,
      filter: typeof filter === 'string' ? () => filter : filter,
    })),
  }
}

/** A time in a filter. */
function formatFilterTime(ms: number): string {
  return `datetime(${new Date(ms).toISOString()})`
}

/**
 * Filter for records that were last seen more than `days` days ago; or that were created that long
 * ago and never seen.
 */
function notSeenSinceFilter(days: number) {
  return ({ nowMs }: FilterContext): string => {
    const before = formatFilterTime(nowMs - days * DAY_MS)
    return `lastSeenAt < ${before} or (lastSeenAt = null and createdAt < ${before})`
  }
}

function expiresWithinDayFilter({ nowMs }: FilterContext): string {
  return `expiresAt > ${formatFilterTime(nowMs)} and expiresAt <= ${formatFilterTime(nowMs + DAY_MS)}`
}

const routerStateFacet = createFacet(
  'state',
  'State',
  ['online', 'Online', 'connected = true'],
  ['offline', 'Offline', 'connected = false and fingerprint != null and disabled = false'],
  ['unverified', 'Not enrolled', 'fingerprint = null'],
  ['disabled', 'Disabled', 'disabled = true'],
)

const expiryFacet: ListFacet = {
  ...createFacet(
    'expiry',
    'Expiry',
    ['open', 'Not expired', ({ nowMs }) => `expiresAt > ${formatFilterTime(nowMs)}`],
    ['day', 'Expires within a day', expiresWithinDayFilter],
    ['over', 'Expired', ({ nowMs }) => `expiresAt <= ${formatFilterTime(nowMs)}`],
  ),
  usual: { value: 'open', showAll: 'Show expired ones too' },
}

/** Whether a router takes no clients, because it was created as a transit router. */
const routerKindFacet: ListFacet = {
  ...createFacet(
    'kind',
    'Kind',
    ['transit', 'Transit only', 'isTransit = true'],
    ['edge', 'Edge routers', 'isTransit = false'],
  ),
  usual: { value: 'transit', showAll: 'Show edge routers too' },
}

const methodFacet = createFacet(
  'method',
  'Method',
  ['cert', 'Certificate', 'method = "cert"'],
  ['updb', 'Password', 'method = "updb"'],
)

/** Whether the router of a terminator is online. */
const terminatorStateFacet: ListFacet = {
  ...createFacet(
    'state',
    'State',
    ['online', 'Online', ({ offlineRouterIds }) => `not ${atRouters(offlineRouterIds)}`],
    ['offline', 'Offline', ({ offlineRouterIds }) => atRouters(offlineRouterIds)],
  ),
  usesOfflineRouters: true,
}

function atRouters(ids: readonly string[]): string {
  // A list in a filter needs at least one value.
  return `router in [${(ids.length === 0 ? [''] : ids).map((id) => JSON.stringify(id)).join(', ')}]`
}

const identityFacets: readonly ListFacet[] = [
  createFacet(
    'type',
    'Type',
    ['device', 'Devices', 'type = "Device"'],
    ['user', 'Users', 'type = "User"'],
    ['service', 'Services', 'type = "Service"'],
    ['router', 'Routers', 'type = "Router"'],
  ),
  createFacet(
    'state',
    'State',
    ['online', 'Online', 'hasEdgeRouterConnection = true'],
    ['offline', 'Not online', 'hasEdgeRouterConnection = false'],
    ['logged-in', 'Logged in', 'hasApiSession = true'],
    ['disabled', 'Disabled', 'disabled = true'],
    ['locked', 'Password locked', 'isLocked = true'],
  ),
  createFacet(
    'seen',
    'Last seen',
    ['30', 'Not seen for 30 days', notSeenSinceFilter(30)],
    ['90', 'Not seen for 90 days', notSeenSinceFilter(90)],
    ['never', 'Never seen', 'lastSeenAt = null'],
  ),
  createFacet('ends', 'Attribute ends', ['some', 'With an end', 'roleAttributeEndsAt != null']),
  createFacet('admin', 'Administrators', ['yes', 'Only', 'isAdmin = true']),
]

const serviceFacets: readonly ListFacet[] = [
  createFacet(
    'hosts',
    'Hosts',
    ['none', 'Without a host', 'isEmpty(terminators)'],
    ['some', 'With a host', 'not isEmpty(terminators)'],
  ),
]

const edgeRouterFacets: readonly ListFacet[] = [
  createFacet(
    'state',
    'State',
    ['online', 'Online', 'online = true'],
    ['offline', 'Offline', 'isVerified = true and disabled = false and online = false'],
    ['unverified', 'Not enrolled', 'isVerified = false'],
    ['disabled', 'Disabled', 'disabled = true'],
  ),
]

const servicePolicyFacets: readonly ListFacet[] = [
  createFacet(
    'ends',
    'Ends',
    ['coming', 'Ends in the future', 'expiresAt != null and isEnded = false'],
    ['ended', 'Ended', 'isEnded = true'],
    ['never', 'Without an end', 'expiresAt = null'],
  ),
  createFacet(
    'type',
    'Right',
    ['dial', 'Use the service (Dial)', 'type = "Dial"'],
    ['bind', 'Host the service (Bind)', 'type = "Bind"'],
  ),
]

const signerFacets: readonly ListFacet[] = [
  createFacet('certificate', 'Certificate', [
    'month',
    'Expires within 30 days',
    ({ nowMs }) => `notAfter != null and notAfter <= ${formatFilterTime(nowMs + 30 * DAY_MS)}`,
  ]),
]

const facets: Readonly<Record<string, readonly ListFacet[]>> = {
  identities: identityFacets,
  services: serviceFacets,
  'edge-routers': edgeRouterFacets,
  'transit-routers': [routerKindFacet, routerStateFacet],
  authenticators: [methodFacet],
  routers: [routerStateFacet],
  'service-policies': servicePolicyFacets,
  terminators: [terminatorStateFacet],
  'external-jwt-signers': signerFacets,
  enrollments: [expiryFacet],
}

/** The choices by which the list of a kind can be narrowed. */
export function listFacets({ path }: { readonly path: string }): readonly ListFacet[] {
  return facets[path] ?? []
}
