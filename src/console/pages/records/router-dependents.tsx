import { hasPermission } from '../../app/management-document.ts'
import { FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { consolePath } from '../../app/navigation.ts'
import { consoleApiClient } from '../../app/console-state.ts'
import { visibleText } from '../../app/visible-text.ts'
import { MANAGEMENT_API_PATH } from '../../../client/cluster-client.ts'
import { CopyText } from '../../controls/copy.tsx'
import { Icon } from '../../controls/icon.tsx'
import { Skeleton } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import { quoteFilterText } from './filters.ts'
import { parseRowPage, type RecordRow, type RowPage } from './record-data.ts'

const SHOWN = 12
const kinds = ['services', 'identities'] as const
type DependentKind = (typeof kinds)[number]
const permissions = { services: 'service.read', identities: 'identity.read' } as const

type DependentPages = Readonly<Partial<Record<DependentKind, RowPage>>>

/**
 * Services and identities that may use this router and for which no other router is online now.
 */
async function readDependents(id: string, signal: AbortSignal): Promise<DependentPages> {
  const others = `online = true and not id = ${quoteFilterText(id)}`
  const query = new URLSearchParams({
    limit: String(SHOWN),
    sort: 'name asc',
    filter: `isEmpty(from edgeRouters where ${others})`,
  })
  const pages = await Promise.all(
    kinds
      .filter((kind) => hasPermission(permissions[kind]))
      .map(async (kind) => {
        const path = `${MANAGEMENT_API_PATH}/edge-routers/${encodeURIComponent(id)}/${kind}?${query}`
        return [kind, parseRowPage((await consoleApiClient.ask({ path, signal })).body)] as const
      }),
  )
  return Object.fromEntries(pages)
}

/**
 * Lists the services and identities that an outage of this router would affect, because no other
 * router is online for them.
 */
export function RouterDependents({ record }: { readonly record: RecordRow }) {
  const { dependents } = texts.record
  const loaded = useLoadedData(`dependents/${record.id}`, (signal) =>
    readDependents(record.id, signal),
  )
  const { value: pages } = loaded.data
  const found = kinds.flatMap((kind) => {
    const page = pages?.[kind]
    return page === undefined || page.totalCount === 0 ? [] : [{ kind, page }]
  })
  const isOnline = record['isOnline'] === true
  const isHarmless = pages !== null && found.length === 0
  return (
    <section class="panel" aria-labelledby="dependents">
      <div class="panel-head">
        <h2 id="dependents">
          {isOnline
            ? dependents.onlineTitle
            : isHarmless
              ? dependents.harmlessTitle
              : dependents.title}
        </h2>
      </div>
      {loaded.error.value === null ? null : (
        <div class="panel-body">
          <FailureNotice error={loaded.error.value} />
        </div>
      )}
      {pages === null && loaded.error.value === null ? (
        <div class="panel-body">
          <Skeleton width="50%" />
        </div>
      ) : null}
      {isHarmless ? (
        <p class="panel-body dependents-none soft small">
          <Icon name="check" />
          {dependents.none}
        </p>
      ) : null}
      {isOnline ? null : (
        <div class="panel-body">
          <CopyText label={dependents.check} text={dependents.checkCommand} />
        </div>
      )}
      {found.map(({ kind, page }) => (
        <div class="dependents" key={kind}>
          <h3>{dependents[kind](page.totalCount)}</h3>
          <ul class="chips">
            {page.rows.map((row) => (
              <li key={row.id}>
                <a class="chip" href={consolePath(kind, row.id)}>
                  <span>{visibleText(String(row['name'] ?? row.id))}</span>
                </a>
              </li>
            ))}
            {page.totalCount > page.rows.length ? (
              <li class="faint small">{texts.preview.more(page.totalCount - page.rows.length)}</li>
            ) : null}
          </ul>
        </div>
      ))}
    </section>
  )
}
