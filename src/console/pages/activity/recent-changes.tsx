import { useLoadedData } from '../../app/loaded.ts'
import { FailureNotice } from '../../app/failure.tsx'
import { consolePath } from '../../app/navigation.ts'
import { Skeleton } from '../../controls/status.tsx'
import { Time } from '../../controls/time.tsx'
import { texts } from '../../texts.ts'
import { fetchRecentChanges } from './activity-data.ts'
import { ChangeSummary, RefusalBadge, RunSummary } from './activity-list.tsx'
import { groupRuns } from './entry-runs.ts'

const REFRESH_MS = 10_000
const SHOWN_MAX = 10

/** Shows the newest entries of the audit log that {@link fetchRecentChanges} selects. */
export function RecentChangesPanel() {
  const { news } = texts
  const changes = useLoadedData('audit', fetchRecentChanges, REFRESH_MS)
  const { value: rows } = changes.data
  return (
    <section class="panel" aria-labelledby="changes">
      <div class="panel-head">
        <h2 id="changes">{news.changes}</h2>
        <a class="small" href={consolePath('activity')}>
          {news.all}
        </a>
      </div>
      {changes.error.value === null ? null : (
        <div class="panel-body">
          <FailureNotice error={changes.error.value} />
        </div>
      )}
      {rows === null && changes.error.value === null ? (
        <div class="panel-body">
          <Skeleton />
        </div>
      ) : null}
      <ul class="feed">
        {groupRuns(rows ?? [])
          .slice(0, SHOWN_MAX)
          .map(({ first, entries }) => (
            <li key={first.index}>
              <span class="feed-text">
                {entries.length > 1 ? (
                  <RunSummary entries={entries} />
                ) : (
                  <>
                    <ChangeSummary entry={first} /> <RefusalBadge entry={first} />
                  </>
                )}
              </span>
              <span class="faint tiny">
                <Time at={first.at} />
              </span>
            </li>
          ))}
      </ul>
    </section>
  )
}
