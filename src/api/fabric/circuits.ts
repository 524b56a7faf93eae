import { defineEntity } from '../../entities/define-entity.ts'
import { textField } from '../../entities/fields.ts'
import type { LiveTable, LiveCircuit } from '../../ports/live-table.ts'
import type { StateView } from '../../ports/state-view.ts'
import { liveEntityReference } from './live-list.ts'
import type { ListResponseSerializer } from '../http/responses/list-response-serializer.ts'
import type { Operation } from '../http/operation.ts'
import { liveTableOperations } from './live-tables.ts'
import { circuitSchema, circuitDeleteSchema } from './fabric-schema.ts'

interface CircuitOperationsDeps {
  readonly state: StateView
  readonly circuits: LiveTable<LiveCircuit>
  readonly lists: ListResponseSerializer
}

/** Symbols by which circuits can be filtered and sorted. */
const rows = defineEntity({
  name: 'circuit',
  plural: 'circuits',
  operations: {},
  fields: { clientId: textField(), service: textField(), terminator: textField() },
  symbols: ['clientId', 'service', 'terminator'],
})

/** Operations on the circuits that this controller owns. */
export function circuitOperations({ circuits, lists, state }: CircuitOperationsDeps): Operation[] {
  return liveTableOperations({
    table: circuits,
    lists,
    name: 'circuit',
    collection: 'circuits',
    schema: circuitSchema,
    rows,
    fieldsOf,
    viewOf: (each) => viewOf(each, state),
    operationIds: { list: 'listCircuits', detail: 'detailCircuit', delete: 'deleteCircuit' },
    summaries: {
      list: 'List the circuits that this controller answers for',
      detail: 'Show a circuit',
      delete: 'End a circuit',
    },
    deleteBody: { schema: circuitDeleteSchema, isRequired: false },
  })
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
    id,
    clientId,
    tags: {},
    createdAt: at,
    updatedAt: at,
    service: liveEntityReference(state, 'service', 'services', serviceId),
    terminator: liveEntityReference(state, 'terminator', 'terminators', terminatorId),
    path: {
      nodes: routerIds.map((routerId) => liveEntityReference(state, 'router', 'routers', routerId)),
      links: linkIds.map((linkId) => liveEntityReference(state, null, 'links', linkId)),
    },
  }
}
