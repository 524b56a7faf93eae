import { defineEntity } from '../../entities/define.ts'
import { noLinks } from '../../fsm/query/evaluate.ts'
import { Lister } from '../../fsm/query/list.ts'
import { symbolNames } from '../../fsm/query/symbols.ts'
import { Table } from '../../fsm/state.ts'
import { Problem } from '../../lib/problems.ts'
import { notBuiltYet } from '../../lib/not-built-yet.ts'
import type { Call } from '../call.ts'
import { listAnswer } from '../answers/envelope.ts'
import type { Answer } from '../answers/envelope.ts'
import type { Operation } from '../operation.ts'
import { listParameters, listQueryOf } from '../answers/query-parameters.ts'
import { circuit, circuitDelete, nothing } from '../schemas/schemas.ts'

const common = { apis: ['fabric'], success: 200 } as const
const rows = defineEntity({
  name: 'reported',
  plural: 'reported',
  operations: {},
  fields: {},
  symbols: [],
})
const noRows = notBuiltYet(new Table(rows))
const lister = new Lister(noLinks)

/** Circuits are made by controllers that can route them; until one can, there are none. */
export function circuitOperations(): Operation[] {
  return [
    ...readers(),
    {
      ...common,
      operationId: 'deleteCircuit',
      summary: 'Ends a circuit',
      tag: 'circuits',
      permission: 'ops.delete',
      method: 'DELETE',
      path: '/circuits/{id}',
      body: { schema: circuitDelete, isRequired: false },
      response: { kind: 'detail', schema: nothing },
      refusals: [400, 401, 404, 429, 503],
      handle: (call) => missing(call),
    },
  ]
}

function readers(): Operation[] {
  const about = { ...common, tag: 'circuits', permission: 'ops.read', method: 'GET' } as const
  return [
    {
      ...about,
      operationId: 'listCircuits',
      summary: 'Lists the circuits that connected routers tell of',
      path: '/circuits',
      query: listParameters,
      response: { kind: 'list', schema: circuit },
      refusals: [400, 401, 429, 503],
      handle: (call) => none(call),
    },
    {
      ...about,
      operationId: 'detailCircuit',
      summary: 'Shows one of the circuits',
      path: '/circuits/{id}',
      response: { kind: 'detail', schema: circuit },
      refusals: [401, 404, 429, 503],
      handle: (call) => missing(call),
    },
  ]
}

/** A query that is wrong is refused, although there is nothing to find. */
function none(call: Call): Answer {
  const { limit, offset, totalCount } = lister.list(noRows, listQueryOf(call), null)
  return listAnswer([], { limit, offset, totalCount }, symbolNames(rows))
}

function missing(call: Call): Answer {
  throw new Problem('NOT_FOUND', { detail: `circuit with id ${call.param('id')} not found` })
}
