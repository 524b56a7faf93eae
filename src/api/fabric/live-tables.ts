import { Problem } from '../../lib/problems.ts'
import type { LiveRow, LiveTable } from '../../ports/live-table.ts'
import type { RequestContext } from '../http/request-context.ts'
import { detailResponse, type Reply } from '../http/responses/envelope.ts'
import type { ListResponseSerializer } from '../http/responses/list-response-serializer.ts'
import { type LiveListOptions, liveListResponse } from './live-list.ts'
import { listQueryParameters } from '../http/query-parameters.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import type { RequestBody } from '../http/operation-traits.ts'
import type { NamedSchema } from '../../entities/operations.ts'
import { emptyBodySchema } from '../schemas/envelope.ts'
import type { circuitDeleteSchema } from './fabric-schema.ts'

type Named = Readonly<Record<'list' | 'detail' | 'delete', string>>

/** A live table, with everything that the fabric API needs to serve it. */
interface LiveTableApi<R extends LiveRow> extends LiveListOptions<R> {
  readonly table: LiveTable<R>
  readonly lists: ListResponseSerializer
  /** Term for a row in error messages. */
  readonly name: string
  readonly collection: string
  readonly operationIds: Named
  readonly summaries: Named
  readonly schema: NamedSchema
  /** Body of the request that removes a row. */
  readonly deleteBody?: RequestBody<typeof circuitDeleteSchema.schema>
}

/** Operations that list, show and remove the rows of a live table of this controller. */
export function liveTableOperations<R extends LiveRow>(of: LiveTableApi<R>): Operation[] {
  const { table, lists, collection, operationIds, summaries, schema, deleteBody } = of
  const common = { apis: ['fabric'], success: 200, tag: collection } as const
  const path = `/${collection}/{id}`
  const remove = (call: RequestContext, isImmediate: boolean): Reply => {
    if (!table.remove(call.param('id'), isImmediate)) throwMissingRow(call, of)
    return detailResponse({})
  }
  const removal = {
    ...common,
    operationId: operationIds.delete,
    summary: summaries.delete,
    permission: 'ops.delete',
    method: 'DELETE',
    path,
    response: { kind: 'detail', schema: emptyBodySchema },
    refusals: [404],
  } as const
  return [
    {
      ...common,
      operationId: operationIds.list,
      summary: summaries.list,
      permission: 'ops.read',
      method: 'GET',
      path: `/${collection}`,
      query: listQueryParameters,
      response: { kind: 'list', schema },
      isCompressible: true,
      handle: (call) => liveListResponse(lists, call, table.list(), of),
    },
    {
      ...common,
      operationId: operationIds.detail,
      summary: summaries.detail,
      permission: 'ops.read',
      method: 'GET',
      path,
      response: { kind: 'detail', schema },
      refusals: [404],
      handle: (call) => {
        const row = table.get(call.param('id')) ?? throwMissingRow(call, of)
        return detailResponse(of.viewOf(row))
      },
    },
    deleteBody === undefined
      ? { ...removal, handle: (call) => remove(call, false) }
      : operationWithBody({
          ...removal,
          body: deleteBody,
          handle: (call, { immediate }) => remove(call, immediate === true),
        }),
  ]
}

/** @throws {Problem} NOT_FOUND, always. */
export function throwMissingRow(call: RequestContext, { name }: { readonly name: string }): never {
  throw new Problem('NOT_FOUND', { detail: `${name} with id ${call.param('id')} not found` })
}
