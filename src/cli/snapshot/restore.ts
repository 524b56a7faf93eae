import { printWarning } from '../terminal/short-host-name.ts'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { basename, dirname } from 'node:path'

import { readFileChunks, readBackupHead } from '../../backup/backup-files.ts'
import type { LoadedBackup } from '../../backup/load-backup.ts'
import { type BackupManifest, MIGRATED_GENERATION } from '../../backup/manifest.ts'
import { fillDataFolderFromBackup, type RestoreTarget } from '../../backup/restore-backup.ts'
import { systemClock } from '../../lib/clock.ts'
import { newOpaqueId } from '../../lib/random.ts'
import { formatUuid, newUuidv7 } from '../../lib/text/uuid.ts'
import { CommandFailure, EXIT_FAILED, EXIT_USAGE } from '../../controller/command-failure.ts'
import { syncFolder, writePublicFile } from '../../pki/secret-file.ts'
import { createDataFolderWithState } from '../../store/folder/create-data-folder.ts'
import {
  type ConfigFlags,
  planConfig,
  type PlannedConfig,
  refuseForeignPlannedFolders,
} from '../bootstrap/config-from-flags.ts'
import { makeFolder } from '../terminal/make-folder.ts'
import { printJson, printLine } from '../terminal/output.ts'
import { routerResetSteps, startCommand } from '../terminal/start-command.ts'
import { prefixErrorsWithFile } from './backup-file.ts'
import {
  prepareRestoredCredentials,
  restoreMarkerPath,
  type RestoredCredentials,
} from './restored-credentials.ts'
import {
  type BackupPosition,
  recordCountsText,
  backupPositionJson,
  backupOriginText,
} from './backup-text.ts'
import { readBackupKey, requireSha256 } from './verify.ts'

export interface RestoreOptions extends ConfigFlags {
  readonly key?: string
  readonly sha256?: string
  readonly json?: boolean
}

/** Output of `cluster snapshot restore --json`. */
export interface RestoreResult {
  readonly id: string
  readonly clusterId: string
  readonly generation: number
  readonly config: string
  readonly ca: string
  readonly isIdentityKept: boolean
  readonly from: BackupPosition
  readonly counts: Readonly<Record<string, number>>
}

/**
 * `cluster snapshot restore FILE CONFIG` creates the first controller of a new cluster with the
 * content of a backup. Repeating it is safe: the data folder appears complete and last, and no
 * controller can run without it.
 * @throws {CommandFailure} exit 2 for flags and configuration, otherwise 1, for example for files
 * that it would have to overwrite.
 */
export async function restoreSnapshot(
  path: string,
  configPath: string,
  options: RestoreOptions,
): Promise<void> {
  // Files created here are readable only by their owner, unless they are meant to be public.
  process.umask(0o077)
  const key = readBackupKey(options.key)
  const manifest = await prefixErrorsWithFile(path, () => readBackupHead(path))
  requireMigratedConfig(path, configPath, manifest)
  const planned = planConfig(configPath, options, manifest.trustDomain)
  refuseForeignPlannedFolders(planned)
  refuseTrustDomain(planned, manifest)
  refuseData(planned)
  const credentials = prepareRestoredCredentials(planned, manifest, systemClock.nowMs())
  const result = await prefixErrorsWithFile(path, () =>
    restore({ path, key, manifest, planned, credentials }, options),
  )
  printWarning(planned.warning)
  if (options.json === true) printJson(result)
  else printResult(result, manifest)
}

interface Restoring {
  readonly path: string
  readonly key: string | null
  readonly manifest: BackupManifest
  readonly planned: PlannedConfig
  readonly credentials: RestoredCredentials
}

async function restore(restoring: Restoring, options: RestoreOptions): Promise<RestoreResult> {
  const { path, key, manifest, planned, credentials } = restoring
  const { config, folder } = planned
  const first = firstController(restoring)
  makeFolder(dirname(config.data))
  let restored: LoadedBackup | null = null
  await createDataFolderWithState(config.data, first, async (building) => {
    const bytes = readFileChunks(path)
    const filled = await fillDataFolderFromBackup(
      building,
      bytes,
      { privateKeyPem: key },
      {
        ...first,
        leaf: async (issuing, backup) => {
          requireSha256(path, backup, options.sha256)
          const leaf = await credentials.leaf(issuing)
          credentials.write(leaf)
          return leaf
        },
      },
    )
    restored = filled.backup
    if (!planned.isThere) writePublicFile(planned.path, planned.text)
    return filled
  })
  rmSync(restoreMarkerPath(planned), { force: true })
  // Makes the removal of the marker durable: if a power failure restored the marker, a later
  // restore could replace these keys.
  syncFolder(folder)
  return {
    id: config.id,
    clusterId: first.clusterId,
    generation: first.generation,
    config: planned.path,
    ca: config.identity.ca,
    isIdentityKept: credentials.isKept,
    from: backupPositionJson(manifest),
    counts: (restored as LoadedBackup | null)?.summary.counts ?? {},
  }
}

function firstController({ manifest, planned }: Restoring): Omit<RestoreTarget, 'leaf'> {
  const { id, cluster, log } = planned.config
  const timeMs = systemClock.nowMs()
  return {
    nodeId: id,
    storeId: newOpaqueId(),
    clusterId: formatUuid(newUuidv7(timeMs)),
    // A higher generation distinguishes the restored cluster from the old one: controllers refuse
    // old members, and clients do not compare their stored log indexes with new ones.
    generation: manifest.generation + 1,
    address: cluster.advertise,
    timeMs,
    freeBytesMin: log.lowSpaceBytes,
  }
}

/**
 * Requires the configuration of a migrated network: without it, the restore would write a
 * configuration with another ID, key and address, which no router and no client of the network
 * knows.
 */
function requireMigratedConfig(
  path: string,
  configPath: string,
  { generation, members }: BackupManifest,
): void {
  if (generation !== MIGRATED_GENERATION || existsSync(configPath)) return
  throw new CommandFailure(
    EXIT_USAGE,
    `${configPath} does not exist; ${basename(path)} is a migrated network, whose controllers keep their ids and keys: name the configuration that 'flotilla migrate' wrote for ${members.join(' or ')}`,
  )
}

/**
 * Refuses a configuration with another trust domain, because every certificate that the network has
 * issued contains the trust domain of the backup.
 */
function refuseTrustDomain({ path, config }: PlannedConfig, { trustDomain }: BackupManifest): void {
  if (config.trustDomain === trustDomain) return
  throw new CommandFailure(
    EXIT_USAGE,
    `${path} has trustDomain ${config.trustDomain}, the backup ${trustDomain}; correct the file`,
  )
}

function refuseData({ config: { data } }: PlannedConfig): void {
  if (!existsSync(data) || readdirSync(data).length === 0) return
  throw new CommandFailure(
    EXIT_FAILED,
    `${data} is not empty; move it away, or set data to another folder`,
  )
}

function printResult(result: RestoreResult, manifest: BackupManifest): void {
  const { id, clusterId, generation, counts, isIdentityKept, config } = result
  printLine(`${id} is the first controller of cluster ${clusterId}, generation ${generation}`)
  printLine(`restored from ${backupOriginText(manifest)}`)
  printLine(`${recordCountsText({ counts, frames: 0, bytes: 0 })}; all sessions have ended`)
  printLine(
    isIdentityKept
      ? 'certificate and key of the old controller are reused'
      : 'this controller has a new key, so unused enrollment tokens are invalid; refresh those enrollments',
  )
  printLine('keep the controllers of the old cluster stopped; other controllers join with tickets')
  printLine(`start it with: ${startCommand('controller', config)}`)
  // A migrated network has OpenZiti routers, which remember no keys of controllers.
  if (manifest.generation === MIGRATED_GENERATION) return
  const refused = isIdentityKept
    ? 'controllers that join with a new key'
    : 'the new key of this controller'
  printLine(`routers refuse ${refused} until you reset them; then, on the host of each router:`)
  printLine(`  ${routerResetSteps}`)
}
