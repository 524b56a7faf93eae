import type { ScheduledBackups } from '../../api/backups/backup-control.ts'
import { type ConnectionOptions, openClusterConnection } from '../client/connection.ts'
import { formatTable, printJson, printLine } from '../terminal/output.ts'
import { isoTime } from '../../lib/text/format-time.ts'

/** Prints the scheduled backups that one controller has written, the newest first. */
export async function listScheduledBackups(
  options: ConnectionOptions & { readonly json?: boolean },
): Promise<void> {
  const found = (await openClusterConnection(options)('backups', {})) as ScheduledBackups
  if (options.json === true) printJson(found)
  else printLine(backupsText(found))
}

function backupsText({ isScheduled, backups }: ScheduledBackups): string {
  if (!isScheduled) return 'this controller has no schedule; set backup.folder in its configuration'
  if (backups.length === 0) return 'none yet; cluster status shows BACKUP_FAILED if one failed'
  return formatTable(
    ['file', 'taken'],
    backups.map(({ name, takenAtMs }) => [name, isoTime(takenAtMs)]),
  )
}
