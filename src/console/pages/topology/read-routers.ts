import { client } from '../../app/services.ts'
import { FABRIC } from '../../client/api-client.ts'
import type { LiveRow } from '../live/live-data.ts'

const PAGE = 500
const PAGES_MAX = 10

/** All routers, page by page. */
export async function readRouters(signal: AbortSignal): Promise<readonly LiveRow[]> {
  const rows: LiveRow[] = []
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const query = new URLSearchParams({ limit: String(PAGE), offset: String(page * PAGE) })
    const { body } = await client.ask({ path: `${FABRIC}/routers?${query}`, signal })
    const { data } = body as { readonly data: readonly LiveRow[] }
    rows.push(...data)
    if (data.length < PAGE) break
  }
  return rows
}
