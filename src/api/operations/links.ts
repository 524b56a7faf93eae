import { defineEntity } from '../../entities/define.ts'
import { boolean, integer, text } from '../../entities/fields.ts'
import { lanesOf } from '../../fsm/digest.ts'
import { noLinks } from '../../fsm/query/evaluate.ts'
import { Lister } from '../../fsm/query/list.ts'
import { symbolNames } from '../../fsm/query/symbols.ts'
import { Table } from '../../fsm/state.ts'
import { Problem } from '../../lib/problems.ts'
import type { Json } from '../../lib/canonical-json.ts'
import type { LiveLink } from '../../ports/live-links.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { Call } from '../call.ts'
import { detailAnswer, listAnswer } from '../answers/envelope.ts'
import type { Answer } from '../answers/envelope.ts'
import type { Operation } from '../operation.ts'
import { listParameters, listQueryOf } from '../answers/query-parameters.ts'
import type { ApiParts } from '../parts.ts'
import { link, linkPatch, nothing } from '../schemas/schemas.ts'

const common = { apis: ['fabric'], success: 200, tag: 'links' } as const

/** What links are filtered and sorted by. */
const rows = defineEntity({
  name: 'link',
  plural: 'links',
  operations: {},
  fields: {
    protocol: text(),
    dialAddress: text(),
    sourceRouter: text(),
    destRouter: text(),
    state: text(),
    down: boolean(),
    iteration: integer(),
    staticCost: integer(),
    cost: integer(),
    sourceLatency: integer(),
    destLatency: integer(),
  },
  symbols: [
    ...(['protocol', 'dialAddress', 'sourceRouter', 'destRouter', 'state', 'down'] as const),
    ...(['iteration', 'staticCost', 'cost', 'sourceLatency', 'destLatency'] as const),
  ],
})
const lister = new Lister(noLinks)
/** Nobody asks for the digest of what is not replicated. */
const noLanes = lanesOf('', '')

/** Links between routers, as those that are connected to this controller report them. */
export function linkOperations({ links, state }: Pick<ApiParts, 'links' | 'state'>): Operation[] {
  const found = (call: Call): LiveLink => links.get(call.param('id')) ?? missing(call)
  return [
    {
      ...common,
      operationId: 'listLinks',
      summary: 'Lists the links that connected routers tell of',
      permission: 'ops.read',
      method: 'GET',
      path: '/links',
      query: listParameters,
      response: { kind: 'list', schema: link },
      refusals: [400, 401, 429, 503],
      handle: (call) => list(call, links.all(), state),
    },
    {
      ...common,
      operationId: 'detailLink',
      summary: 'Shows one of the links',
      permission: 'ops.read',
      method: 'GET',
      path: '/links/{id}',
      response: { kind: 'detail', schema: link },
      refusals: [401, 404, 429, 503],
      handle: (call) => detailAnswer(viewOf(found(call), state)),
    },
    {
      ...common,
      operationId: 'patchLink',
      summary: 'Takes a link down or changes its cost',
      permission: 'ops.update',
      method: 'PATCH',
      path: '/links/{id}',
      body: { schema: linkPatch, isRequired: true },
      response: { kind: 'detail', schema: nothing },
      refusals: [400, 401, 404, 429, 503],
      handle: (call) => {
        const { down, staticCost } = call.body as LinkPatch
        const changes = {
          ...(typeof down === 'boolean' ? { isDown: down } : {}),
          ...(typeof staticCost === 'number' ? { staticCost } : {}),
        }
        if (!links.change(call.param('id'), changes)) missing(call)
        return detailAnswer({})
      },
    },
    {
      ...common,
      operationId: 'deleteLink',
      summary: 'Removes a link; its routers close it, and may dial it again',
      permission: 'ops.delete',
      method: 'DELETE',
      path: '/links/{id}',
      response: { kind: 'detail', schema: nothing },
      refusals: [401, 404, 429, 503],
      handle: (call) => {
        if (!links.remove(call.param('id'))) missing(call)
        return detailAnswer({})
      },
    },
  ]
}

interface LinkPatch {
  readonly down?: boolean | null
  readonly staticCost?: number | null
}

function list(call: Call, all: readonly LiveLink[], state: StateView): Answer {
  const table = new Table(rows)
  for (const each of all) {
    const values: Readonly<Record<string, Json>> = { ...flat(each) }
    table.change(each.id, { record: table.shape(values, 1), lanes: noLanes })
  }
  const byId = new Map(all.map((each) => [each.id, each]))
  const { records, limit, offset, totalCount } = lister.list(table, listQueryOf(call), null)
  const shown = records.flatMap(({ id }) => {
    const each = byId.get(id)
    return each === undefined ? [] : [viewOf(each, state)]
  })
  return listAnswer(shown, { limit, offset, totalCount }, symbolNames(rows))
}

function flat(each: LiveLink) {
  const { id, protocol, dialAddress, state, iteration, staticCost, cost } = each
  return {
    ...{ id, protocol, dialAddress, state, iteration, staticCost, cost },
    sourceRouter: each.sourceRouterId,
    destRouter: each.destRouterId,
    down: each.isDown,
    sourceLatency: each.sourceLatencyNs,
    destLatency: each.destLatencyNs,
  }
}

function viewOf(each: LiveLink, state: StateView) {
  const { id, protocol, iteration, staticCost, cost, sourceLatencyNs, destLatencyNs } = each
  return {
    ...{ id, protocol, iteration, staticCost, cost, state: each.state, down: each.isDown },
    sourceRouter: routerRef(state, each.sourceRouterId),
    destRouter: routerRef(state, each.destRouterId),
    sourceLatency: sourceLatencyNs,
    destLatency: destLatencyNs,
    connections: each.connections.map(({ type, sourceAddress, destAddress }) => ({
      ...{ type, source: sourceAddress, dest: destAddress },
    })),
  }
}

/** A router that is reported and not on record has its id for a name. */
function routerRef(state: StateView, id: string) {
  const name = state.get('router', id)?.['name']
  return {
    _links: { self: { href: `./routers/${id}` } },
    entity: 'routers',
    id,
    name: typeof name === 'string' ? name : id,
  }
}

function missing(call: Call): never {
  throw new Problem('NOT_FOUND', { detail: `link with id ${call.param('id')} not found` })
}
