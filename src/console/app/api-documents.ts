import { signal } from '@preact/signals'

import { MANAGEMENT } from '../../client/cluster-client.ts'
import { ApiDocument, type ServedDocument } from '../client/api-document.ts'
import { client, session } from './services.ts'

let loading: Promise<ApiDocument> | null = null

/** The document of the management API, read once a tab. */
export function managementDocument(): Promise<ApiDocument> {
  loading ??= client
    .ask({ path: `${MANAGEMENT}/openapi.json`, timeoutMs: 10_000 })
    .then(({ body }) => new ApiDocument(body as ServedDocument))
    .catch((error: unknown) => {
      loading = null
      throw error
    })
  return loading
}

interface Caller {
  readonly isAdmin: boolean
  readonly permissions: readonly string[]
}

const caller = signal<Caller | null>(null)
let callerOf = ''

/** Reads once a session what its identity may do. */
export async function loadCaller(): Promise<void> {
  const token = session.token() ?? ''
  if (callerOf === token) return
  callerOf = token
  const { body } = await client.ask({ path: `${MANAGEMENT}/current-identity` })
  const { data } = body as { readonly data: Partial<Caller> }
  caller.value = { isAdmin: data.isAdmin === true, permissions: data.permissions ?? [] }
}

/**
 * Whether it makes sense to offer an operation. The controller decides; until it is known what the
 * caller may do, all is offered.
 */
export function mayDo(permission: string): boolean {
  const { value } = caller
  if (value === null || value.isAdmin) return true
  if (permission === 'session' || permission === 'partial' || permission === 'public') return true
  if (permission.endsWith('.read') && value.permissions.includes('admin_readonly')) return true
  const kind = permission.split('.')[0] ?? ''
  return value.permissions.includes(permission) || value.permissions.includes(kind)
}
