import { FABRIC_API_PATH, MANAGEMENT_API_PATH } from '../../../client/cluster-client.ts'
import { hasPermission } from '../../app/management-document.ts'
import { readRows, type RecordRow } from '../records/record-data.ts'
import type { LiveDataRow } from './live-row.ts'

/** Maximum records of one request, so that their IDs fit into its address. */
const LOOKED_UP_MAX = 90
const KNOWN_MAX = 2000

/** Values that do not change, of the records that were read last; '' for a missing record. */
class KnownValues {
  readonly #path: string
  readonly #api: string
  readonly #permission: string
  readonly #valueOf: (row: RecordRow) => unknown
  #known: ReadonlyMap<string, string> = new Map()

  constructor(
    [api, path, permission]: readonly [api: string, path: string, permission: string],
    valueOf: (row: RecordRow) => unknown,
  ) {
    this.#api = api
    this.#path = path
    this.#permission = permission
    this.#valueOf = valueOf
  }

  /** Reads the values of records that are not known yet; a refusal leaves them unknown. */
  async read(ids: readonly string[], signal?: AbortSignal): Promise<ReadonlyMap<string, string>> {
    const missing = [...new Set(ids)].filter((id) => !this.#known.has(id)).slice(0, LOOKED_UP_MAX)
    if (missing.length === 0 || !hasPermission(this.#permission)) return this.#known
    const filter = `id in [${missing.map((id) => JSON.stringify(id)).join(', ')}]`
    const page = await readRows(this.#path, filter, signal, missing.length, this.#api).catch(
      () => null,
    )
    if (page === null) return this.#known
    const found = new Map(page.rows.map((row) => [row.id, String(this.#valueOf(row) ?? '')]))
    this.#known = new Map([
      ...[...this.#known].slice(-KNOWN_MAX),
      ...missing.map((id) => [id, found.get(id) ?? ''] as const),
    ])
    return this.#known
  }
}

const methods = new KnownValues(
  [MANAGEMENT_API_PATH, 'authenticators', 'authenticator.read'],
  ({ method }) => method,
)
const hosts = new KnownValues([FABRIC_API_PATH, 'terminators', 'ops.read'], ({ hostId }) => hostId)

/** ID that a session has in place of its authenticator if a CA vouches for its certificate. */
const BY_CA = 'internal'

/**
 * Adds the method of its log-in to each API session for which it is known: `cert`, `updb`, `ottca`
 * or `jwt`.
 */
export async function withLogInMethods(
  rows: readonly LiveDataRow[],
  signal?: AbortSignal,
): Promise<readonly LiveDataRow[]> {
  const idOf = (row: LiveDataRow): string => String(row['authenticatorId'] ?? '')
  const known = await methods.read(
    rows.map(idOf).filter((id) => id !== '' && id !== BY_CA),
    signal,
  )
  return rows.map((row) => {
    const id = idOf(row)
    if (id === BY_CA) return { ...row, method: 'ottca' }
    const method = known.get(id)
    // A session by a token of a provider has an authenticator ID without a record.
    return method === undefined || id === '' ? row : { ...row, method: method || 'jwt' }
  })
}

/** IDs of routers that are offline, as many as one response contains; none if they are unknown. */
export async function readOfflineRouterIds(signal?: AbortSignal): Promise<ReadonlySet<string>> {
  if (!hasPermission('router.read')) return new Set()
  const page = await readRows('routers', 'connected = false', signal).catch(() => null)
  return new Set(page?.rows.map(({ id }) => id))
}

/** Adds `hostId` to each circuit for which the identity that hosts the service is known. */
export async function withHosts(
  rows: readonly LiveDataRow[],
  signal?: AbortSignal,
): Promise<readonly LiveDataRow[]> {
  const idOf = ({ terminator }: LiveDataRow): string =>
    String((terminator as { readonly id?: unknown } | null | undefined)?.id ?? '')
  const known = await hosts.read(
    rows.map(idOf).filter((id) => id !== ''),
    signal,
  )
  return rows.map((row) => {
    const hostId = known.get(idOf(row)) ?? ''
    return hostId === '' ? row : { ...row, hostId }
  })
}
