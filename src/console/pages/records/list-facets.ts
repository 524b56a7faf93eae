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
  /** True: its filters use the routers that are offline. */
  readonly usesOfflineRouters?: boolean
}

export function createFacet(
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

export const DAY_MS = 86_400_000

/** A time in a filter. */
export function formatFilterTime(ms: number): string {
  return `datetime(${new Date(ms).toISOString()})`
}

/**
 * Filter for records that were last seen more than `days` days ago; or that were created that long
 * ago and never seen.
 */
export function notSeenSinceFilter(days: number) {
  return ({ nowMs }: FilterContext): string => {
    const before = formatFilterTime(nowMs - days * DAY_MS)
    return `lastSeenAt < ${before} or (lastSeenAt = null and createdAt < ${before})`
  }
}

function expiresWithinDayFilter({ nowMs }: FilterContext): string {
  return `expiresAt > ${formatFilterTime(nowMs)} and expiresAt <= ${formatFilterTime(nowMs + DAY_MS)}`
}

export const routerStateFacet = createFacet(
  'state',
  'State',
  ['online', 'Online', 'connected = true'],
  ['offline', 'Offline', 'connected = false and fingerprint != null and disabled = false'],
  ['unverified', 'Not enrolled', 'fingerprint = null'],
  ['disabled', 'Disabled', 'disabled = true'],
)

export const expiryFacet = createFacet(
  'expiry',
  'Expiry',
  ['open', 'Not expired', ({ nowMs }) => `expiresAt > ${formatFilterTime(nowMs)}`],
  ['day', 'Expires within a day', expiresWithinDayFilter],
  ['over', 'Expired', ({ nowMs }) => `expiresAt <= ${formatFilterTime(nowMs)}`],
)

/** Whether the router of a terminator is online. */
export const terminatorStateFacet: ListFacet = {
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
