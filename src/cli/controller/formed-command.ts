import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { IDENTITY_FILE_NAME } from '../../store/log/data-identity.ts'
import { loadConfigOrFail } from '../client/connection.ts'
import { printJson, printLine } from '../terminal/output.ts'

/** Marker files next to a configuration while `cluster init` or `cluster join` is incomplete. */
const UNFINISHED = ['.forming', '.joining']

/**
 * `controller formed CONFIG` reports whether the controller has been created, for scripts that run
 * `cluster init` or `cluster join` only once. A controller with a key but without data has lost its
 * disk. It counts as created, because `cluster init` would create a second cluster.
 * @throws {CommandFailure} exit 1 when the controller has not been created, 2 when the
 * configuration is invalid.
 */
export function requireCreatedController(path: string, isJson: boolean): void {
  const reason = unformedReason(path)
  if (reason !== null) throw new CommandFailure(EXIT_FAILED, reason)
  if (isJson) printJson({ config: path, isFormed: true })
  else printLine(`${path}: the controller is part of a cluster`)
}

function unformedReason(path: string): string | null {
  if (!existsSync(path))
    return `${path} does not exist; run 'flotilla cluster init' or 'flotilla cluster join'`
  const { data, identity } = loadConfigOrFail(path)
  const folder = dirname(resolve(path))
  const open = UNFINISHED.find((name) => existsSync(join(folder, name)))
  if (open !== undefined)
    return `${join(folder, open)} exists: 'cluster init' or 'cluster join' was interrupted; rerun the same command`
  if (existsSync(join(data, IDENTITY_FILE_NAME)) || existsSync(identity.key)) return null
  return `neither ${join(data, IDENTITY_FILE_NAME)} nor ${identity.key} exists; run 'flotilla cluster init' or 'flotilla cluster join'`
}
