import type { NamedSchema } from '../../entities/operations.ts'
import { EVENT_NAMESPACES, type EventNamespace } from '../../lib/event-namespaces.ts'
import {
  parsePattern,
  patternCharactersMax,
  type TextPattern,
} from '../../lib/text/text-pattern.ts'
import { fieldProblem, Problem, type ProblemCode } from '../../lib/problems.ts'
import {
  comparePositions,
  type EventFilter,
  type EventPosition,
  type EventStreams,
  parsePosition,
  RECORD_NAMESPACES,
} from '../../ports/events.ts'
import type { RequestContext } from '../http/request-context.ts'
import { type Reply, streamedResponse } from '../http/responses/envelope.ts'
import { requireCaller } from '../sessions/current-identity.ts'
import { EVENTS_PERMISSION, canSeeEvents, createEventReader } from './event-access.ts'
import type { Operation } from '../http/operation.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'
import type { RequestAuthenticator } from '../../auth/sessions/request-authenticator.ts'

interface EventOperationsDeps {
  readonly cluster: ClusterView
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly events: EventStreams
  readonly refusal: () => ProblemCode | null
  readonly gate: RequestAuthenticator
}

const EVENT_STREAM = 'text/event-stream'
/** Header that makes a proxy such as nginx forward events immediately instead of buffering them. */
const UNBUFFERED = { 'x-accel-buffering': 'no' } as const
const LAST_EVENT_ID = 'last-event-id'
const NAMES_CHARACTERS_MAX = 1024

const eventStream: NamedSchema = {
  name: 'eventStream',
  schema: {
    type: 'string',
    description:
      'Server-sent events. Each has one line of JSON and an id from which a client can resume. The events ready, gap and closed concern the stream itself',
  },
}

const text = (maxLength: number) => ({ type: 'string', maxLength }) as const

/** Operations that stream events of the network. */
export function eventOperations(deps: EventOperationsDeps): Operation[] {
  return [
    {
      operationId: 'streamEvents',
      summary: 'Stream events (server-sent events)',
      tag: 'events',
      apis: ['fabric'],
      method: 'GET',
      path: '/events',
      permission: EVENTS_PERMISSION,
      query: [
        { name: 'namespaces', schema: text(NAMES_CHARACTERS_MAX), isRequired: false },
        { name: 'entityTypes', schema: text(NAMES_CHARACTERS_MAX), isRequired: false },
        { name: 'metricFilter', schema: text(patternCharactersMax), isRequired: false },
        { name: 'sourceFilter', schema: text(patternCharactersMax), isRequired: false },
      ],
      headers: [
        {
          name: LAST_EVENT_ID,
          description:
            'The stream resumes after the event with this id, at any controller; the event gap reports that later events are no longer stored',
        },
      ],
      success: 200,
      response: { kind: 'bare', schema: eventStream, types: [EVENT_STREAM] },
      handle: (call) => streamAnswer(call, deps),
    },
  ]
}

/**
 * Opens an event stream.
 * @throws {Problem}
 */
function streamAnswer(call: RequestContext, deps: EventOperationsDeps): Reply | Promise<Reply> {
  const filter = filterOf(call, deps)
  const isOfRecords = [...filter.namespaces].some((one) => RECORD_NAMESPACES.has(one))
  const after = resumeAfter(call, deps)
  // Runs after any wait for the position, because creating the reader checks the limit on open
  // streams.
  const answer = (): Reply => {
    const reader = {
      ...createEventReader(requireCaller(call), call, deps, () => isOfRecords),
      filter,
      after,
    }
    return streamedResponse(deps.events.open(reader), EVENT_STREAM, UNBUFFERED)
  }
  // The client may have received the position from another controller, which is ahead of this
  // controller. The stream then waits until this controller reaches the position, and does not
  // repeat earlier events.
  const isAhead = after?.generation === deps.cluster.generation
  if (!isAhead || after.index <= deps.state.appliedIndex) return answer()
  return deps.reads.reachIndex(after.index).then(answer)
}

function filterOf(call: RequestContext, { events }: EventOperationsDeps): EventFilter {
  return {
    namespaces: namespacesOf(call),
    metrics: patternOf(call, 'metricFilter'),
    sources: patternOf(call, 'sourceFilter'),
    entityTypes: entityTypesOf(call, events.entityTypes),
  }
}

/** The namespaces that the client requests or, by default, all that the caller may see. */
function namespacesOf(call: RequestContext): ReadonlySet<EventNamespace> {
  const { caller } = call
  if (caller === null) throw new Problem('UNAUTHORIZED')
  const names = namesIn(call, 'namespaces')
  if (names === null)
    return new Set(EVENT_NAMESPACES.filter((one) => canSeeEvents(caller, call, one)))
  const known = new Map<string, EventNamespace>(EVENT_NAMESPACES.map((one) => [one, one]))
  const asked = names.map((name) => {
    const namespace = known.get(name)
    if (namespace !== undefined) return namespace
    throw fieldProblem('namespaces', `should be some of ${EVENT_NAMESPACES.join(', ')}`, name)
  })
  const refused = asked.find((one) => !canSeeEvents(caller, call, one))
  if (refused === undefined) return new Set(asked)
  throw new Problem('UNAUTHORIZED', { detail: `${refused} events are for administrators` })
}

function entityTypesOf(call: RequestContext, known: readonly string[]): ReadonlySet<string> | null {
  const names = namesIn(call, 'entityTypes')
  const unknown = names?.find((name) => !known.includes(name))
  if (unknown !== undefined) {
    throw fieldProblem('entityTypes', `should be some of ${known.join(', ')}`, unknown)
  }
  return names === null ? null : new Set(names)
}

/** The comma-separated names in a query parameter; null if the parameter is absent. */
function namesIn(call: RequestContext, parameter: string): readonly string[] | null {
  const given = call.first(parameter)
  if (given === undefined) return null
  return given.split(',').map((name) => name.trim())
}

function patternOf(call: RequestContext, parameter: string): TextPattern | null {
  const given = call.first(parameter)
  if (given === undefined) return null
  const pattern = parsePattern(given)
  if (pattern !== null) return pattern
  throw fieldProblem(parameter, 'may hold text, ".", ".*", "^", "$" and "|" alone', given)
}

function resumeAfter(call: RequestContext, { cluster }: EventOperationsDeps): EventPosition | null {
  const given = call.headers[LAST_EVENT_ID]
  if (given === undefined || given === '') return null
  const position = parsePosition(given)
  if (position === null) {
    throw fieldProblem('Last-Event-ID', 'must be the id of an event that this API sent', given)
  }
  const beyond = { generation: cluster.generation + 1, index: 0, sequence: 0 }
  if (comparePositions(position, beyond) < 0) return position
  throw new Problem('INDEX_NOT_REACHED', {
    detail: `generation ${position.generation} is not known here yet`,
    retryAfterSeconds: 1,
  })
}
