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
import type { NamedSchema } from '../../entities/operations.ts'
import type { Operation } from '../operation.ts'
import { listParameters, listQueryOf } from '../answers/query-parameters.ts'
import { circuit, circuitDelete, link, linkPatch, nothing } from '../schemas/schemas.ts'

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

/** Links and circuits are reported by routers that are connected; until one is, there are none. */
export function fabricOperations(): Operation[] {
  return [
    ...readers('link', 'Link', link),
    {
      ...common,
      operationId: 'patchLink',
      summary: 'Takes a link down or changes its cost',
      tag: 'links',
      permission: 'ops.update',
      method: 'PATCH',
      path: '/links/{id}',
      body: { schema: linkPatch, isRequired: true },
      response: { kind: 'detail', schema: nothing },
      refusals: [400, 401, 404, 429, 503],
      handle: (call) => missing('link', call),
    },
    {
      ...common,
      operationId: 'deleteLink',
      summary: 'Removes a link',
      tag: 'links',
      permission: 'ops.delete',
      method: 'DELETE',
      path: '/links/{id}',
      response: { kind: 'detail', schema: nothing },
      refusals: [401, 404, 429, 503],
      handle: (call) => missing('link', call),
    },
    ...readers('circuit', 'Circuit', circuit),
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
      handle: (call) => missing('circuit', call),
    },
  ]
}

function readers(name: 'link' | 'circuit', noun: string, schema: NamedSchema): Operation[] {
  const about = { ...common, tag: `${name}s`, permission: 'ops.read', method: 'GET' } as const
  return [
    {
      ...about,
      operationId: `list${noun}s`,
      summary: `Lists the ${name}s that connected routers tell of`,
      path: `/${name}s`,
      query: listParameters,
      response: { kind: 'list', schema },
      refusals: [400, 401, 429, 503],
      handle: (call) => none(call),
    },
    {
      ...about,
      operationId: `detail${noun}`,
      summary: `Shows one of the ${name}s`,
      path: `/${name}s/{id}`,
      response: { kind: 'detail', schema },
      refusals: [401, 404, 429, 503],
      handle: (call) => missing(name, call),
    },
  ]
}

/** A query that is wrong is refused, although there is nothing to find. */
function none(call: Call): Answer {
  const { limit, offset, totalCount } = lister.list(noRows, listQueryOf(call), null)
  return listAnswer([], { limit, offset, totalCount }, symbolNames(rows))
}

function missing(kind: 'link' | 'circuit', call: Call): Answer {
  throw new Problem('NOT_FOUND', { detail: `${kind} with id ${call.param('id')} not found` })
}
