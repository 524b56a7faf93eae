import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'

import { quoteShellWord } from './output.ts'

/** Programs with a systemd unit, and the file that the unit reads in the folder of its instance. */
const unitFiles = { controller: 'config.yml', router: 'router.yml' } as const

type UnitProgram = keyof typeof unitFiles

const unitFolders = ['/etc/systemd/system', '/usr/lib/systemd/system', '/lib/systemd/system']

/** Commands that make a router with a systemd unit forget the keys of its controllers. */
export const routerResetSteps = [
  'systemctl stop flotilla-router@NAME',
  'flotilla router reset /etc/flotilla/NAME/router.yml',
  'systemctl start flotilla-router@NAME',
].join('; ')

/**
 * The command that starts a program with a configuration. If this host has a systemd unit for the
 * configuration, the command starts the unit: a program that is started by hand would run in
 * addition to the unit, or as another user.
 * @param folders where units are installed.
 */
export function startCommand(
  program: UnitProgram,
  path: string,
  folders: readonly string[] = unitFolders,
): string {
  return (
    unitStartCommand(program, path, folders) ?? `flotilla ${program} run ${quoteShellWord(path)}`
  )
}

/**
 * The command that starts the systemd unit for the configuration; null if no unit on this host uses
 * it.
 */
export function unitStartCommand(
  program: UnitProgram,
  path: string,
  folders: readonly string[] = unitFolders,
): string | null {
  const unit = unitName(program, path, folders)
  return unit === null ? null : `systemctl start ${unit}`
}

/**
 * The command that starts a program for the first time: a unit is also enabled, so that it starts
 * with the host.
 */
export function firstStartCommand(
  program: UnitProgram,
  path: string,
  folders: readonly string[] = unitFolders,
): string {
  const unit = unitName(program, path, folders)
  return unit === null ? startCommand(program, path, folders) : `systemctl enable --now ${unit}`
}

/** How to restart a running program, as the end of a sentence. */
export function restartAdvice(
  program: UnitProgram,
  path: string,
  folders: readonly string[] = unitFolders,
): string {
  const unit = unitName(program, path, folders)
  return unit === null
    ? `stop it, and start it again with: ${startCommand(program, path, folders)}`
    : `restart it with: systemctl restart ${unit}`
}

/** The unit that runs the program with the configuration; null if this host has none. */
export function unitName(
  program: UnitProgram,
  path: string,
  folders: readonly string[] = unitFolders,
): string | null {
  const [, name, file] = /^\/etc\/flotilla\/([A-Za-z0-9._-]+)\/([^/]+)$/.exec(resolve(path)) ?? []
  if (name === undefined || file !== unitFiles[program]) return null
  const isInstalled = folders.some((folder) =>
    existsSync(join(folder, `flotilla-${program}@.service`)),
  )
  return isInstalled ? `flotilla-${program}@${name}` : null
}
