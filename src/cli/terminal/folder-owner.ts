import { spawnSync } from 'node:child_process'
import { type Stats, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

import { usageFailure } from '../../controller/command-failure.ts'
import { quoteShellWord } from './output.ts'

const WRITABLE_FOR_ALL = 0o002

/**
 * Refuses a command that root runs on folders of another user: the command would create files that
 * belong to root, so that the program could not open them when it runs as the other user.
 * @param paths files or folders that the command writes; for a missing path, the owner of the
 * nearest existing folder counts.
 * @param instead command for the message; null: the same command, run as the owner.
 * @throws {CommandFailure} exit 2; its message contains the command to use instead.
 */
export function refuseForeignFolders(
  paths: readonly string[],
  instead: string | null = null,
): void {
  if (process.geteuid?.() !== 0) return
  for (const path of paths) {
    const found = nearestExisting(resolve(path))
    // Root's own folders, and folders such as /tmp in which everyone may create files, are allowed.
    if (found === null || found.status.uid === 0) continue
    if ((found.status.mode & WRITABLE_FOR_ALL) !== 0) continue
    const name = userName(found.status.uid)
    const whose = name === null ? `user id ${found.status.uid}` : `user ${name}`
    throw usageFailure(
      `${found.path} belongs to ${whose}, who could not open the files that root creates; type: ${instead ?? commandAs(name, found.status)}`,
    )
  }
}

function nearestExisting(path: string): { readonly path: string; readonly status: Stats } | null {
  const status = statSync(path, { throwIfNoEntry: false })
  if (status !== undefined) return { path, status }
  const parent = dirname(path)
  return parent === path ? null : nearestExisting(parent)
}

function userName(uid: number): string | null {
  const { status, stdout } = spawnSync('getent', ['passwd', `${uid}`], { encoding: 'utf8' })
  return status === 0 ? (stdout.split(':')[0] ?? null) : null
}

/** The command line that runs the same command as the owner. */
function commandAs(name: string | null, { uid, gid }: Stats): string {
  const typed = ['flotilla', ...process.argv.slice(2)].map(quoteShellWord).join(' ')
  if (name === null) return `setpriv --reuid=${uid} --regid=${gid} --clear-groups ${typed}`
  if (process.env['SUDO_USER'] !== undefined) return `sudo -u ${quoteShellWord(name)} ${typed}`
  return `runuser -u ${quoteShellWord(name)} -- ${typed}`
}
