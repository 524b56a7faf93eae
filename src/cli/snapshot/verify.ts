import { readFileChunks, readBackupHead } from '../../backup/backup-files.ts'
import { type CheckedBackup, checkWholeBackup } from '../../backup/load-backup.ts'
import { type BackupReadResult, checkBackup } from '../../backup/read-backup.ts'
import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { printJson, printLine } from '../terminal/output.ts'
import { readSecretInput } from '../terminal/secret-input.ts'
import { prefixErrorsWithFile } from './backup-file.ts'
import { recordCountsText, manifestJson, backupOriginText } from './backup-text.ts'

export interface VerifyOptions {
  readonly key?: string
  readonly sha256?: string
  readonly json?: boolean
}

/**
 * `cluster snapshot verify FILE` checks whether a backup can be restored, without a controller. The
 * content of an encrypted backup is checked only with its key.
 */
export async function verifySnapshot(path: string, options: VerifyOptions): Promise<void> {
  const key = readBackupKey(options.key)
  const checked = await prefixErrorsWithFile(path, () => check(path, key))
  requireSha256(path, checked, options.sha256)
  if (options.json === true) printJson(jsonOf(path, checked))
  else printLine(textOf(path, checked))
  if (checked.findings === null || checked.findings.length === 0) return
  throw new CommandFailure(
    EXIT_FAILED,
    `${path}: the state has broken references (${checked.findings[0]?.description ?? ''}); it can be restored, run an integrity check with repair afterwards`,
  )
}

/** @throws {CommandFailure} exit 1. @returns null when the options name no key file. */
export function readBackupKey(path: string | undefined): string | null {
  return path === undefined ? null : readSecretInput(path, 'the key of the backup')
}

/**
 * Requires that the backup has the wanted checksum. Also accepts the checksum at the end of the
 * file, which releases before 0.3.0 printed.
 * @throws {CommandFailure} exit 1.
 */
export function requireSha256(
  path: string,
  { sha256, endChecksum }: Pick<BackupReadResult, 'sha256' | 'endChecksum'>,
  wanted: string | undefined,
): void {
  if (wanted === undefined || [sha256, endChecksum].includes(wanted.toLowerCase())) return
  throw new CommandFailure(
    EXIT_FAILED,
    `${path} has SHA-256 ${sha256}, which is not that of --sha256; use another copy of the backup`,
  )
}

/** `findings` is null if the encrypted content could not be checked without its key. */
type Checked = Omit<CheckedBackup, 'findings' | 'secrets'> & {
  readonly findings: CheckedBackup['findings'] | null
}

async function check(path: string, privateKeyPem: string | null): Promise<Checked> {
  const { encryption } = await readBackupHead(path)
  if (encryption === null || privateKeyPem !== null) {
    return await checkWholeBackup(readFileChunks(path), { privateKeyPem })
  }
  return { ...(await checkBackup(readFileChunks(path))), findings: null }
}

function jsonOf(path: string, { manifest, summary, sha256, findings }: Checked): object {
  return {
    file: path,
    sha256,
    isWhole: true,
    isStateChecked: findings !== null,
    findings: (findings ?? []).map(({ description }) => description),
    manifest: manifestJson(manifest),
    summary,
  }
}

function textOf(path: string, { manifest, summary, sha256, findings }: Checked): string {
  const how =
    findings === null
      ? 'is intact; its encrypted content was not checked, pass --key to check it'
      : 'is intact, and so is the state in it'
  return [
    `${path} ${how}`,
    backupOriginText(manifest),
    `${recordCountsText(summary)}; ${manifest.hasSecrets ? 'with' : 'without'} secrets`,
    `SHA-256 ${sha256}`,
  ].join('\n')
}
