import { defineEntity } from '../../entities/define-entity.ts'
import { booleanField, integerField, textField } from '../../entities/fields.ts'
import type { LiveLink, LiveLinks } from '../../ports/live-table.ts'
import type { StateView } from '../../ports/state-view.ts'
import { detailResponse } from '../http/responses/envelope.ts'
import type { ListResponseSerializer } from '../http/responses/list-response-serializer.ts'
import { liveEntityReference } from './live-list.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import { liveTableOperations, throwMissingRow } from './live-tables.ts'
import { linkSchema, linkPatchSchema } from './fabric-schema.ts'
import { emptyBodySchema } from '../schemas/envelope.ts'

interface LinkOperationsDeps {
  readonly state: StateView
  readonly links: LiveLinks
  readonly lists: ListResponseSerializer
}

/** Symbols by which links can be filtered and sorted. */
const rows = defineEntity({
  name: 'link',
  plural: 'links',
  operations: {},
  fields: {
    protocol: textField(),
    dialAddress: textField(),
    sourceRouter: textField(),
    destRouter: textField(),
    state: textField(),
    down: booleanField(),
    iteration: integerField(),
    staticCost: integerField(),
    cost: integerField(),
    sourceLatency: integerField(),
    destLatency: integerField(),
  },
  symbols: [
    ...(['protocol', 'dialAddress', 'sourceRouter', 'destRouter', 'state', 'down'] as const),
    ...(['iteration', 'staticCost', 'cost', 'sourceLatency', 'destLatency'] as const),
  ],
})

/** Operations on links between routers, as the connected routers report them. */
export function linkOperations({ links, lists, state }: LinkOperationsDeps): Operation[] {
  const offered = {
    table: links,
    lists,
    name: 'link',
    collection: 'links',
    schema: linkSchema,
    rows,
    fieldsOf,
    viewOf: (each: LiveLink) => viewOf(each, state),
    operationIds: { list: 'listLinks', detail: 'detailLink', delete: 'deleteLink' },
    summaries: {
      list: 'List the links that routers connected to this controller report',
      detail: 'Show a link',
      delete: 'Remove a link; its routers close it, and may dial it again',
    },
  }
  return [
    ...liveTableOperations(offered),
    operationWithBody({
      apis: ['fabric'],
      success: 200,
      tag: 'links',
      operationId: 'patchLink',
      summary: 'Take a link down or change its cost',
      permission: 'ops.update',
      method: 'PATCH',
      path: '/links/{id}',
      body: { schema: linkPatchSchema, isRequired: true },
      response: { kind: 'detail', schema: emptyBodySchema },
      refusals: [404],
      handle: (call, { down, staticCost }) => {
        const changes = {
          ...(typeof down === 'boolean' ? { isDown: down } : {}),
          ...(typeof staticCost === 'number' ? { staticCost } : {}),
        }
        if (!links.change(call.param('id'), changes)) throwMissingRow(call, offered)
        return detailResponse({})
      },
    }),
  ]
}

function fieldsOf(each: LiveLink) {
  const { id, protocol, dialAddress, state, iteration, staticCost, cost } = each
  return {
    id,
    protocol,
    dialAddress,
    state,
    iteration,
    staticCost,
    cost,
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
    id,
    protocol,
    iteration,
    staticCost,
    cost,
    state: each.state,
    down: each.isDown,
    sourceRouter: liveEntityReference(state, 'router', 'routers', each.sourceRouterId),
    destRouter: liveEntityReference(state, 'router', 'routers', each.destRouterId),
    sourceLatency: sourceLatencyNs,
    destLatency: destLatencyNs,
    connections: each.connections.map(({ type, sourceAddress, destAddress }) => ({
      type,
      source: sourceAddress,
      dest: destAddress,
    })),
  }
}
