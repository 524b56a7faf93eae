import { Failure, FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { PageHead } from '../../app/page-head.tsx'
import { consoleApiClient } from '../../app/console-state.ts'
import type { ClusterBackups } from '../../client/served-types.ts'
import { CopyText } from '../../controls/copy.tsx'
import { Badge, EmptyState, Notice, Skeleton } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import { RecordCell } from '../records/record-cell.tsx'
import { fieldLabel } from '../records/form-model.ts'

const REFRESH_MS = 30_000

async function load(signal: AbortSignal): Promise<ClusterBackups> {
  return (await consoleApiClient.served('GET /fabric/v1/cluster/backups', { signal })).data
}

/** Lists scheduled backups, and explains how to create and restore a backup. */
export function BackupsPage() {
  const { backups } = texts
  const loaded = useLoadedData('backups', load, REFRESH_MS)
  const { value: shown } = loaded.data
  return (
    <>
      <PageHead title={texts.pages.backups} lead={backups.lead}>
        {shown?.isScheduled === true ? <Badge tone="good">{backups.scheduled}</Badge> : null}
      </PageHead>
      <div class="stack">
        {shown === null && loaded.error.value !== null ? (
          <Failure error={loaded.error.value} retry={loaded.reload} />
        ) : (
          <>
            <FailureNotice error={loaded.error.value} />
            <section class="panel" aria-labelledby="backup-list">
              <div class="panel-head">
                <h2 id="backup-list">{backups.list}</h2>
              </div>
              {shown === null ? (
                <div class="panel-body">
                  <Skeleton />
                </div>
              ) : (
                <>
                  {shown.isScheduled || shown.backups.length > 0 ? (
                    <Table rows={shown.backups} />
                  ) : null}
                  {shown.isScheduled ? null : (
                    <div class="panel-body form">
                      <Notice tone="warn">{backups.schedule}</Notice>
                      <CopyText label={backups.option} text={backups.optionText} />
                    </div>
                  )}
                </>
              )}
            </section>
          </>
        )}
        <section class="panel" aria-labelledby="backup-host">
          <div class="panel-head">
            <h2 id="backup-host">{backups.onHost}</h2>
          </div>
          <div class="panel-body form">
            <p class="soft small">{backups.onHostWhat}</p>
            <CopyText label={backups.take} text={backups.takeCommand} />
            <CopyText label={backups.restore} text={backups.restoreCommand} />
          </div>
        </section>
      </div>
    </>
  )
}

function Table({ rows }: { readonly rows: readonly Readonly<Record<string, unknown>>[] }) {
  const { backups } = texts
  const [first] = rows
  if (first === undefined) {
    return (
      <EmptyState icon="backup" title={backups.none}>
        <p>{backups.noneWhat}</p>
      </EmptyState>
    )
  }
  const columns = Object.keys(first)
  return (
    <div class="table-wrap" tabIndex={0} role="group" aria-label={texts.table}>
      <table class="table">
        <thead>
          <tr>
            {columns.map((name) => (
              <th scope="col" key={name}>
                {fieldLabel(name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {columns.map((name) => (
                <td key={name}>
                  <RecordCell name={name} value={row[name]} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
