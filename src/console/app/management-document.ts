import { signal } from '@preact/signals'

import { MANAGEMENT_API_PATH } from '../../client/cluster-client.ts'
import { ApiDocument, type ServedDocument } from '../client/api-document.ts'
import type { IdentityDetail } from '../client/served-types.ts'
import { consoleApiClient, tabSession } from './console-state.ts'

let loading: Promise<ApiDocument> | null = null

/** The OpenAPI document of the management API, loaded once for each tab. */
export function managementDocument(): Promise<ApiDocument> {
  loading ??= consoleApiClient
    .ask({ path: `${MANAGEMENT_API_PATH}/openapi.json`, timeoutMs: 10_000 })
    .then(({ body }) => new ApiDocument(body as ServedDocument))
    .catch((error: unknown) => {
      loading = null
      throw error
    })
  return loading
}

type Caller = Pick<IdentityDetail, 'isAdmin' | 'permissions'>

/** Null until it is known. */
export const currentCaller = signal<Caller | null>(null)
let callerOf = ''

/** Loads the permissions of the identity once for each session. */
export async function loadCaller(): Promise<void> {
  const token = tabSession.token() ?? ''
  if (callerOf === token) return
  callerOf = token
  const { data } = await consoleApiClient
    .served('GET /edge/management/v1/current-identity')
    .catch((error: unknown) => {
      callerOf = ''
      throw error
    })
  const { isAdmin, permissions = [] } = data
  currentCaller.value = { isAdmin, permissions }
}

/**
 * True if the console should offer an operation. Only the controller enforces permissions. Until
 * the permissions of the caller are known, the console offers everything.
 */
export function hasPermission(permission: string): boolean {
  const { value } = currentCaller
  if (value === null || value.isAdmin) return true
  if (permission === 'session' || permission === 'partial' || permission === 'public') return true
  const permissions = value.permissions ?? []
  if (permission.endsWith('.read') && permissions.includes('admin_readonly')) return true
  const kind = permission.split('.')[0] ?? ''
  return permissions.includes(permission) || permissions.includes(kind)
}
