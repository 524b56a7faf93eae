import { open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'

import { BACKUP_MAGIC_PREFIX } from '../../backup/container.ts'
import { BackupFault } from '../../backup/backup-fault.ts'
import { readBackupSummary, readBackupHead } from '../../backup/backup-files.ts'
import type { BackupManifest, BackupSummary } from '../../backup/manifest.ts'
import { formatTable, printJson, printLine } from '../terminal/output.ts'
import { prefixErrorsWithFile } from './backup-file.ts'
import { manifestJson } from './backup-text.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { isoTime } from '../../lib/text/format-time.ts'

export interface ListOptions {
  readonly json?: boolean
}

interface Listed {
  readonly file: string
  readonly bytes: number
  /** null if the head of the file cannot be read. */
  readonly manifest: BackupManifest | null
  readonly summary: BackupSummary | null
  /** null if the beginning and the end of the file are intact. */
  readonly fault: string | null
}

/**
 * `cluster snapshot list DIR|FILE` reads only the beginning and the end of each backup; `cluster
 * snapshot verify` reads the whole file.
 */
export async function listSnapshots(path: string, options: ListOptions): Promise<void> {
  const found = await prefixErrorsWithFile(path, async () => {
    const files = (await stat(path)).isDirectory() ? await backupsIn(path) : [path]
    const looked: Listed[] = []
    for (const file of files) looked.push(await look(file))
    return looked
  })
  found.sort((a, b) => (b.manifest?.takenAtMs ?? 0) - (a.manifest?.takenAtMs ?? 0))
  if (options.json === true) printJson(found.map(jsonOf))
  else if (found.length === 0) printLine(`no backups in ${path}`)
  else printLine(formatTable(TITLES, found.map(rowOf)))
}

/** Files in the folder that begin like a backup, regardless of their names. */
async function backupsIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true })
  const files = entries
    .filter((entry) => entry.isFile() && !entry.name.startsWith('.'))
    .map(({ name }) => join(folder, name))
    .sort()
  const found: string[] = []
  for (const file of files) {
    // An unreadable file may be a backup, so it is listed with the reason.
    if (await isBackup(file).catch(() => true)) found.push(file)
  }
  return found
}

async function isBackup(path: string): Promise<boolean> {
  const file = await open(path, 'r')
  try {
    const { buffer, bytesRead } = await file.read(
      Buffer.alloc(BACKUP_MAGIC_PREFIX.length),
      0,
      BACKUP_MAGIC_PREFIX.length,
      0,
    )
    return buffer.toString('latin1', 0, bytesRead) === BACKUP_MAGIC_PREFIX
  } finally {
    await file.close()
  }
}

/**
 * Reads the beginning and the end of one backup. Never throws, so that an unreadable file does not
 * prevent the list of the others.
 */
async function look(file: string): Promise<Listed> {
  let bytes = 0
  let manifest: BackupManifest | null = null
  try {
    bytes = (await stat(file)).size
    manifest = await readBackupHead(file)
    return { file, bytes, manifest, summary: await readBackupSummary(file), fault: null }
  } catch (error) {
    const isOfBackup = error instanceof BackupFault
    const fault = isOfBackup ? error.message : `cannot be read (${errorMessage(error)})`
    return { file, bytes, manifest, summary: null, fault }
  }
}

const TITLES = [
  'file',
  'taken',
  'by',
  'cluster',
  'index',
  'identities',
  'bytes',
  'encrypted',
  'secrets',
  'state',
]

function rowOf({ file, bytes, manifest, summary, fault }: Listed): string[] {
  const yesNo = (is: boolean | undefined): string => (is === undefined ? '-' : is ? 'yes' : 'no')
  return [
    file,
    manifest === null ? '-' : isoTime(manifest.takenAtMs),
    manifest?.controllerId ?? '-',
    manifest?.clusterId ?? '-',
    String(manifest?.index ?? '-'),
    String(summary === null ? '-' : (summary.counts['identity'] ?? 0)),
    String(bytes),
    yesNo(manifest === null ? undefined : manifest.encryption !== null),
    yesNo(manifest?.hasSecrets),
    fault ?? 'complete',
  ]
}

function jsonOf({ manifest, ...rest }: Listed): object {
  return { ...rest, manifest: manifest === null ? null : manifestJson(manifest) }
}
