import type { EventNamespace } from '../../lib/event-namespaces.ts'
import type { EventFilter } from '../../ports/events.ts'
import { eventLimits } from '../limits.ts'
import { findNamespace } from '../namespaces.ts'
import { entityTypeNames } from '../published-records.ts'
import { parsePattern, type TextPattern } from '../../lib/text/text-pattern.ts'

/** An invalid subscription request. The message is one sentence for the sender. */
export class SubscriptionFault extends Error {
  override readonly name = 'SubscriptionFault'
}

const utf8 = new TextDecoder('utf-8')

/**
 * Parses the request of an OpenZiti client: `{format, subscriptions: [{type, options}]}`.
 * @param permits true for namespaces that the caller may read.
 * @throws {SubscriptionFault}
 */
export function parseSubscriptions(
  body: Uint8Array,
  permits: (namespace: EventNamespace) => boolean,
): EventFilter {
  const { format, subscriptions } = objectIn(parsed(body))
  if (format !== 'json') throw new SubscriptionFault('invalid format: only json is offered')
  if (!Array.isArray(subscriptions) || subscriptions.length > eventLimits.eventFilterNamesMax) {
    throw new SubscriptionFault('subscriptions must be a list')
  }
  const namespaces = new Set<EventNamespace>()
  let filter: Omit<EventFilter, 'namespaces'> = { metrics: null, sources: null, entityTypes: null }
  for (const each of subscriptions) {
    const { type, options } = objectIn(each)
    const namespace = findNamespace(String(type))
    if (namespace === undefined) {
      throw new SubscriptionFault(`invalid event type '${String(type).slice(0, 64)}'`)
    }
    if (!permits(namespace)) {
      throw new SubscriptionFault(`the identity of this session may not see ${namespace} events`)
    }
    namespaces.add(namespace)
    const given = objectIn(options ?? {})
    if (namespace === 'metrics') filter = { ...filter, ...metricOptions(given) }
    if (namespace === 'entityChange') filter = { ...filter, ...entityOptions(given) }
  }
  return { namespaces, ...filter }
}

function metricOptions(given: Given): Pick<EventFilter, 'metrics' | 'sources'> {
  const { metricFilter, sourceFilter } = given
  return { metrics: patternIn(metricFilter), sources: patternIn(sourceFilter) }
}

function patternIn(text: unknown): TextPattern | null {
  if (text === undefined || text === null || text === '') return null
  const pattern = typeof text === 'string' ? parsePattern(text) : null
  if (pattern === null) {
    throw new SubscriptionFault('a filter may hold text, ".", ".*", "^", "$" and "|" alone')
  }
  return pattern
}

function entityOptions({ include }: Given): Pick<EventFilter, 'entityTypes'> {
  if (include === undefined || include === null) return { entityTypes: null }
  if (!Array.isArray(include) || include.length > eventLimits.eventFilterNamesMax) {
    throw new SubscriptionFault('include must be a list of entity types')
  }
  return { entityTypes: entityTypesIn(include.map(String)) }
}

/** @throws {SubscriptionFault} for an unknown name. */
function entityTypesIn(names: readonly string[]): ReadonlySet<string> {
  const unknown = names.find((name) => !entityTypeNames.includes(name))
  if (unknown === undefined) return new Set(names)
  const known = entityTypeNames.join(', ')
  throw new SubscriptionFault(
    `invalid entity type '${unknown.slice(0, 64)}': should be one of ${known}`,
  )
}

type Given = Readonly<Record<string, unknown>>

function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(body))
  } catch {
    throw new SubscriptionFault('the request is no JSON')
  }
}

function objectIn(value: unknown): Given {
  if (value !== null && typeof value === 'object' && !Array.isArray(value)) return value as Given
  throw new SubscriptionFault('the request is not a JSON object')
}
