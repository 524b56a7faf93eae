import { client } from '../../app/services.ts'
import { visibleText } from '../../app/visible-text.ts'
import type {
  AccessExplained,
  AccessExplainedDial,
  AccessExplainedIdentity,
} from '../../client/served-types.ts'

export type Direction = AccessExplainedDial

/** One page of explained pairs. */
export interface AccessRows {
  readonly rows: readonly AccessExplained[]
  readonly totalCount: number
}

export const ACCESS_ROWS = 25

export interface AccessQuery {
  readonly identity: string
  readonly service: string
  readonly offset: number
}

/** Requests the explanation of a pair, or of one side with each record of the other. */
export async function explainAccess(query: AccessQuery, signal: AbortSignal): Promise<AccessRows> {
  const { identity, service, offset } = query
  const { data, meta } = await client.served('GET /edge/management/v1/access/explain', {
    query: {
      limit: String(ACCESS_ROWS),
      offset: String(offset),
      ...(identity === '' ? {} : { identity }),
      ...(service === '' ? {} : { service }),
    },
    signal,
    timeoutMs: 10_000,
  })
  return { rows: data, totalCount: meta.pagination?.totalCount ?? data.length }
}

export function refText({ name, id }: Pick<AccessExplainedIdentity, 'id' | 'name'>): string {
  return name === '' ? id : visibleText(name)
}
