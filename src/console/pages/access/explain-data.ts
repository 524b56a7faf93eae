import { client } from '../../app/services.ts'
import { MANAGEMENT } from '../../../client/cluster-client.ts'

export interface Ref {
  readonly id: string
  readonly name?: string
  readonly entity?: string
}

export interface PolicyRef extends Ref {
  readonly semantic?: string
  readonly identityRoles?: readonly string[]
  readonly serviceRoles?: readonly string[]
  readonly edgeRouterRoles?: readonly string[]
  readonly checks?: readonly CheckRef[] | null
}

export interface CheckRef extends Ref {
  readonly typeId: string
  readonly state: 'passes' | 'fails' | 'unknown'
}

export interface Missing {
  readonly code: string
  readonly message: string
  readonly records: readonly Ref[]
}

export interface Direction {
  readonly isGranted: boolean
  readonly isReachable: boolean
  readonly policies: readonly PolicyRef[] | null
  readonly policiesCount: number
  readonly missing: readonly Missing[]
}

export interface AccessRow {
  readonly identity: Ref
  readonly service: Ref
  readonly identityState: {
    readonly isDisabled: boolean
    readonly isAdmin: boolean
    readonly hasAuthenticator: boolean
    readonly hasOutstandingEnrollment: boolean
    readonly hasApiSession: boolean
  }
  readonly dial: Direction
  readonly bind: Direction
  readonly routers: {
    readonly identityCount: number
    readonly serviceCount: number
    readonly commonCount: number
    readonly onlineCount: number
    readonly common: readonly (Ref & { readonly isOnline: boolean })[]
    readonly identityPolicies: readonly PolicyRef[] | null
    readonly servicePolicies: readonly PolicyRef[] | null
  } | null
  readonly terminators: {
    readonly totalCount: number
    readonly onlineCount: number
    readonly items: readonly (Ref & {
      readonly address: string
      readonly binding: string
      readonly router: Ref | null
      readonly isOnline: boolean
    })[]
  } | null
  readonly withheld: readonly string[]
}

export interface AccessRows {
  readonly rows: readonly AccessRow[]
  readonly totalCount: number
}

export const ACCESS_ROWS = 25

export interface AccessQuery {
  readonly identity: string
  readonly service: string
  readonly offset: number
}

/** Asks the server about a pair, or about one side and each of the other. */
export async function explainAccess(query: AccessQuery, signal: AbortSignal): Promise<AccessRows> {
  const { identity, service, offset } = query
  const parameters = new URLSearchParams({ limit: String(ACCESS_ROWS), offset: String(offset) })
  if (identity !== '') parameters.set('identity', identity)
  if (service !== '') parameters.set('service', service)
  const { body } = await client.ask({
    path: `${MANAGEMENT}/access/explain?${parameters}`,
    signal,
    timeoutMs: 10_000,
  })
  const { data, meta } = body as {
    readonly data: readonly AccessRow[]
    readonly meta: { readonly pagination?: { readonly totalCount: number } }
  }
  return { rows: data, totalCount: meta.pagination?.totalCount ?? data.length }
}

export function refText({ name, id }: Ref): string {
  return name === undefined || name === '' ? id : name
}
