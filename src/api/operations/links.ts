import { defineEntity } from '../../entities/define.ts'
import { boolean, integer, text } from '../../entities/fields.ts'
import { Problem } from '../../lib/problems.ts'
import type { LiveLink } from '../../ports/live-links.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { Call } from '../call.ts'
import { detailAnswer } from '../answers/envelope.ts'
import { liveListAnswer, liveRef } from '../answers/live-list.ts'
import type { Operation } from '../operation.ts'
import { listParameters } from '../answers/query-parameters.ts'
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
/** Links between routers, as those that are connected to this controller report them. */
export function linkOperations({ links, state }: Pick<ApiParts, 'links' | 'state'>): Operation[] {
  const found = (call: Call): LiveLink => links.get(call.param('id')) ?? missing(call)
  return [
    {
      ...common,
      operationId: 'listLinks',
      summary: 'List links of connected routers',
      permission: 'ops.read',
      method: 'GET',
      path: '/links',
      query: listParameters,
      response: { kind: 'list', schema: link },
      refusals: [400, 401, 429, 503],
      handle: (call) =>
        liveListAnswer(call, links.all(), {
          ...{ rows, fieldsOf },
          viewOf: (each) => viewOf(each, state),
        }),
    },
    {
      ...common,
      operationId: 'detailLink',
      summary: 'Show a link',
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
      summary: 'Update cost or state of a link',
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
      summary: 'Remove a link; its routers may dial it again',
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

function fieldsOf(each: LiveLink) {
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
    sourceRouter: liveRef(state, 'router', 'routers', each.sourceRouterId),
    destRouter: liveRef(state, 'router', 'routers', each.destRouterId),
    sourceLatency: sourceLatencyNs,
    destLatency: destLatencyNs,
    connections: each.connections.map(({ type, sourceAddress, destAddress }) => ({
      ...{ type, source: sourceAddress, dest: destAddress },
    })),
  }
}

function missing(call: Call): never {
  throw new Problem('NOT_FOUND', { detail: `link with id ${call.param('id')} not found` })
}
