import { defineEntity } from '../../entities/define.ts'
import { text } from '../../entities/fields.ts'
import { Problem } from '../../lib/problems.ts'
import type { LiveCircuit } from '../../ports/live-circuits.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { Call } from '../call.ts'
import { detailAnswer } from '../answers/envelope.ts'
import { liveListAnswer, liveRef } from '../answers/live-list.ts'
import type { Operation } from '../operation.ts'
import { listParameters } from '../answers/query-parameters.ts'
import type { ApiParts } from '../parts.ts'
import { circuit, circuitDelete, nothing } from '../schemas/schemas.ts'

const common = { apis: ['fabric'], success: 200, tag: 'circuits' } as const

/** What circuits are filtered and sorted by. */
const rows = defineEntity({
  name: 'circuit',
  plural: 'circuits',
  operations: {},
  fields: { clientId: text(), service: text(), terminator: text() },
  symbols: ['clientId', 'service', 'terminator'],
})
/** The circuits that this controller has laid. */
export function circuitOperations({
  circuits,
  state,
}: Pick<ApiParts, 'circuits' | 'state'>): Operation[] {
  return [
    {
      ...common,
      operationId: 'listCircuits',
      summary: 'List the circuits created by this controller',
      permission: 'ops.read',
      method: 'GET',
      path: '/circuits',
      query: listParameters,
      response: { kind: 'list', schema: circuit },
      refusals: [400, 401, 429, 503],
      handle: (call) =>
        liveListAnswer(call, circuits.all(), {
          ...{ rows, fieldsOf },
          viewOf: (each) => viewOf(each, state),
        }),
    },
    {
      ...common,
      operationId: 'detailCircuit',
      summary: 'Show a circuit',
      permission: 'ops.read',
      method: 'GET',
      path: '/circuits/{id}',
      response: { kind: 'detail', schema: circuit },
      refusals: [401, 404, 429, 503],
      handle: (call) => {
        const found = circuits.get(call.param('id')) ?? missing(call)
        return detailAnswer(viewOf(found, state))
      },
    },
    {
      ...common,
      operationId: 'deleteCircuit',
      summary: 'Remove a circuit',
      permission: 'ops.delete',
      method: 'DELETE',
      path: '/circuits/{id}',
      body: { schema: circuitDelete, isRequired: false },
      response: { kind: 'detail', schema: nothing },
      refusals: [400, 401, 404, 429, 503],
      handle: (call) => {
        const { immediate } = (call.body ?? {}) as { readonly immediate?: boolean | null }
        if (!circuits.remove(call.param('id'), immediate === true)) missing(call)
        return detailAnswer({})
      },
    },
  ]
}

function fieldsOf({ id, clientId, serviceId, terminatorId, createdAt }: LiveCircuit) {
  const refs = { service: serviceId, terminator: terminatorId }
  return { ...refs, id, clientId, createdAt, updatedAt: createdAt }
}

function viewOf(each: LiveCircuit, state: StateView) {
  const { id, clientId, serviceId, terminatorId, createdAt, routerIds, linkIds } = each
  const at = new Date(createdAt).toISOString()
  return {
    _links: { self: { href: `./circuits/${id}` } },
    ...{ id, clientId, tags: {}, createdAt: at, updatedAt: at },
    service: liveRef(state, 'service', 'services', serviceId),
    terminator: liveRef(state, 'terminator', 'terminators', terminatorId),
    path: {
      nodes: routerIds.map((routerId) => liveRef(state, 'router', 'routers', routerId)),
      links: linkIds.map((linkId) => liveRef(state, '', 'links', linkId)),
    },
  }
}

function missing(call: Call): never {
  throw new Problem('NOT_FOUND', { detail: `circuit with id ${call.param('id')} not found` })
}
