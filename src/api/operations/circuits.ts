import { defineEntity } from '../../entities/define.ts'
import { text } from '../../entities/fields.ts'
import { lanesOf } from '../../fsm/digest.ts'
import { noLinks } from '../../fsm/query/evaluate.ts'
import { Lister } from '../../fsm/query/list.ts'
import { symbolNames } from '../../fsm/query/symbols.ts'
import { Table } from '../../fsm/state.ts'
import { Problem } from '../../lib/problems.ts'
import type { LiveCircuit } from '../../ports/live-circuits.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { Call } from '../call.ts'
import { detailAnswer, listAnswer } from '../answers/envelope.ts'
import type { Answer } from '../answers/envelope.ts'
import type { Operation } from '../operation.ts'
import { listParameters, listQueryOf } from '../answers/query-parameters.ts'
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
const lister = new Lister(noLinks)
/** Nobody asks for the digest of what is not replicated. */
const noLanes = lanesOf('', '')

/** The circuits that this controller has laid. */
export function circuitOperations({
  circuits,
  state,
}: Pick<ApiParts, 'circuits' | 'state'>): Operation[] {
  return [
    {
      ...common,
      operationId: 'listCircuits',
      summary: 'Lists the circuits that this controller has laid',
      permission: 'ops.read',
      method: 'GET',
      path: '/circuits',
      query: listParameters,
      response: { kind: 'list', schema: circuit },
      refusals: [400, 401, 429, 503],
      handle: (call) => list(call, circuits.all(), state),
    },
    {
      ...common,
      operationId: 'detailCircuit',
      summary: 'Shows one of the circuits',
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
      summary: 'Ends a circuit',
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

function list(call: Call, all: readonly LiveCircuit[], state: StateView): Answer {
  const table = new Table(rows)
  for (const { id, clientId, serviceId: service, terminatorId: terminator, createdAt } of all) {
    const values = { id, clientId, service, terminator, createdAt, updatedAt: createdAt }
    table.change(id, { record: table.shape(values, 1), lanes: noLanes })
  }
  const byId = new Map(all.map((each) => [each.id, each]))
  const { records, limit, offset, totalCount } = lister.list(table, listQueryOf(call), null)
  const shown = records.flatMap(({ id }) => {
    const each = byId.get(id)
    return each === undefined ? [] : [viewOf(each, state)]
  })
  return listAnswer(shown, { limit, offset, totalCount }, symbolNames(rows))
}

function viewOf(each: LiveCircuit, state: StateView) {
  const { id, clientId, serviceId, terminatorId, createdAt, routerIds, linkIds } = each
  const at = new Date(createdAt).toISOString()
  return {
    _links: { self: { href: `./circuits/${id}` } },
    ...{ id, clientId, tags: {}, createdAt: at, updatedAt: at },
    service: refOf(state, 'service', 'services', serviceId),
    terminator: refOf(state, 'terminator', 'terminators', terminatorId),
    path: {
      nodes: routerIds.map((routerId) => refOf(state, 'router', 'routers', routerId)),
      links: linkIds.map((linkId) => refOf(state, '', 'links', linkId)),
    },
  }
}

/** What is gone, or has no name, has its id for one. */
function refOf(state: StateView, kind: string, collection: string, id: string) {
  const name = kind === '' ? undefined : state.get(kind, id)?.['name']
  return {
    _links: { self: { href: `./${collection}/${id}` } },
    entity: collection,
    id,
    name: typeof name === 'string' ? name : id,
  }
}

function missing(call: Call): never {
  throw new Problem('NOT_FOUND', { detail: `circuit with id ${call.param('id')} not found` })
}
