import { MANAGEMENT } from '../../client/cluster-client.ts'
import { hasPermission } from './api-documents.ts'
import { client } from './services.ts'

/** Maximum identities that one request names. */
const NAMES_PER_REQUEST_MAX = 100
const NAMES_KEPT_MAX = 2_000

/** Names by id; '' for an identity that does not exist any more. */
const known = new Map<string, string>()

/**
 * Names of identities by id, for lists that contain only ids. An id without a name is absent:
 * the identity was deleted, the user may not read it, or the request failed.
 */
export async function identityNames(
  ids: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const wanted = [...new Set(ids)].filter((id) => id !== '')
  if (known.size > NAMES_KEPT_MAX) known.clear()
  const missing = hasPermission('identity.read') ? wanted.filter((id) => !known.has(id)) : []
  for (let at = 0; at < missing.length; at += NAMES_PER_REQUEST_MAX) {
    await learn(missing.slice(at, at + NAMES_PER_REQUEST_MAX), signal)
  }
  return new Map(
    wanted.flatMap((id) => {
      const name = known.get(id) ?? ''
      return name === '' ? [] : [[id, name] as const]
    }),
  )
}

async function learn(ids: readonly string[], signal: AbortSignal): Promise<void> {
  const filter = `id in [${ids.map((id) => JSON.stringify(id)).join(', ')}]`
  const query = new URLSearchParams({ filter, limit: String(ids.length) })
  try {
    const { body } = await client.ask({ path: `${MANAGEMENT}/identities?${query}`, signal })
    const { data } = body as { readonly data: readonly { id: string; name: string }[] }
    for (const id of ids) known.set(id, '')
    for (const { id, name } of data) known.set(id, name)
  } catch (error) {
    // The list stays usable with ids.
    if (signal.aborted) throw error
  }
}
