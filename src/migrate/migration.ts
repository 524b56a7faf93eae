import { randomBytes } from 'node:crypto'
import { realpathSync } from 'node:fs'

import type { Environment } from '../config/engine/environment.ts'
import type { State } from '../fsm/records/state.ts'
import { parseHostPort } from '../lib/text/names.ts'
import { normalizeHost } from '../pki/authority/router-names.ts'
import { BUNDLE_CERTIFICATES_MAX, parseCertificates } from '../pki/certificate.ts'
import { formatUuid, newUuidv7 } from '../lib/text/uuid.ts'
import { type MigratedAuthorities, migrateAuthorities } from './configuration/controllers.ts'
import {
  type OpenZitiConfiguration,
  readOpenZitiConfiguration,
} from './configuration/openziti-configuration.ts'
import {
  type ControllerFile,
  buildControllerFiles,
} from './configuration/flotilla-configuration.ts'
import { configurationFault } from './configuration/settings.ts'
import { OpenZitiDatabase } from './database.ts'
import { MigrationFault } from './fault.ts'
import { migrateLimits } from './limits.ts'
import { addMemberEnrollmentTokens } from './member-enrollment-tokens.ts'
import { convertDatabase } from './database-conversion.ts'
import { MigrationReport } from './report.ts'

export interface MigrationOptions {
  /** Paths of the old controllers' configurations. */
  readonly configurationPaths: readonly string[]
  /** Paths of the databases; if empty, the paths in the configurations are used. */
  readonly databasePaths: readonly string[]
  /** PEM certificates that the database does not contain, by router id. */
  readonly routerCertificates: ReadonlyMap<string, string>
  readonly environment: Environment
  readonly nowMs: number
  /** Called with the fraction of a database that was checked, 0 to 1. */
  readonly onProgress: (path: string, share: number) => void
}

/** An OpenZiti network, converted to a Flotilla network. Nothing is written yet. */
export interface Migration {
  readonly clusterId: string
  readonly state: State
  readonly authorities: MigratedAuthorities
  /** Key that encrypts the second factors in the state; 32 bytes. */
  readonly factorKey: Uint8Array
  readonly report: MigrationReport
  readonly databases: readonly MigratedDatabase[]
  /** Files to write for each controller, by controller id. */
  readonly files: ReadonlyMap<string, readonly ControllerFile[]>
}

export interface MigratedDatabase {
  readonly path: string
  readonly version: number
  readonly raftIndex: number | null
}

interface OpenedDatabase {
  readonly path: string
  readonly database: OpenZitiDatabase
}

/**
 * Reads configurations and databases, and converts them. Writes nothing.
 * @throws {MigrationFault}
 */
export async function planMigration(options: MigrationOptions): Promise<Migration> {
  const { environment, nowMs, routerCertificates } = options
  const [first, ...others] = options.configurationPaths.map((path) =>
    readOpenZitiConfiguration(path, environment),
  )
  if (first === undefined) throw configurationFault('name the configuration of a controller')
  const report = new MigrationReport()
  const authorities = await migrateAuthorities([first, ...others], report, nowMs)
  const files = new Map(
    authorities.controllers.map((one) => [one.id, buildControllerFiles(one, authorities, report)]),
  )
  const opened = openDatabases(databasePathsOf([first, ...others], options), options)
  try {
    const clusterId = formatUuid(newUuidv7(nowMs))
    const factorKey = Uint8Array.from(randomBytes(32))
    const [newest, ...older] = opened
    const controllerHosts = hostsOf([first, ...others])
    const networkAuthorities = parseCertificates(authorities.caPem, {
      certificatesMax: BUNDLE_CERTIFICATES_MAX,
    })
    const common = { nowMs, clusterId, factorKey, routerCertificates, controllerHosts, report }
    const state = inFile(newest, () =>
      convertDatabase(newest.database, { ...common, networkAuthorities }),
    )
    noteOtherNetwork(authorities, report)
    for (const other of older)
      inFile(other, () => addMemberEnrollmentTokens(state, other, newest, report))
    noteRouterCertificates(state, routerCertificates)
    const databases = opened.map(({ path, database: { version, raftIndex } }) => ({
      path,
      version,
      raftIndex,
    }))
    return { clusterId, state, authorities, factorKey, report, databases, files }
  } finally {
    for (const { database } of opened) database.close()
  }
}

/**
 * Reports a database that belongs to another network than the configurations: the authorities in
 * the configurations issued none of the certificates in the database, so no identity or router
 * could connect.
 */
function noteOtherNetwork({ controllers }: MigratedAuthorities, report: MigrationReport): void {
  const { issued, foreign } = report.certificates
  if (issued > 0 || foreign === 0) return
  const id = controllers.map((one) => one.id).join(', ')
  const place = { store: 'configuration', id, field: 'edge.enrollment.signingCert' }
  const reason = `no authority in the configurations issued any of the ${foreign} certificates of routers and identities in the database; name the configuration and the database of the same network`
  report.note('lost', place, reason)
}

/** Hosts at which routers and clients reach the controllers. */
function hostsOf(configurations: readonly OpenZitiConfiguration[]): ReadonlySet<string> {
  const addresses = configurations.flatMap(({ web, routers }) => [
    ...web.map(({ advertise }) => advertise),
    ...(routers === null ? [] : [routers.advertise]),
  ])
  return new Set(addresses.flatMap((one) => parseHostPort(one)?.host ?? []).map(normalizeHost))
}

function databasePathsOf(
  configurations: readonly OpenZitiConfiguration[],
  { databasePaths }: MigrationOptions,
): readonly string[] {
  if (databasePaths.length > migrateLimits.databasesMax) {
    throw configurationFault(`name at most ${migrateLimits.databasesMax} databases`)
  }
  if (databasePaths.length > 0) return databasePaths
  return configurations.map(({ databasePath, path }) => {
    if (databasePath !== null) return databasePath
    throw configurationFault(`${path} names no database; name it with --db`)
  })
}

/** The opened databases, newest first. */
function openDatabases(
  paths: readonly string[],
  { onProgress }: MigrationOptions,
): readonly [OpenedDatabase, ...OpenedDatabase[]] {
  const opened: OpenedDatabase[] = []
  try {
    for (const path of paths) {
      opened.push({
        path,
        database: named(path, () =>
          OpenZitiDatabase.open(path, (share) => onProgress(path, share)),
        ),
      })
    }
    requireOneNetwork(opened)
    const [newest, ...older] = [...opened].sort(
      (a, b) => (b.database.raftIndex ?? 0) - (a.database.raftIndex ?? 0),
    )
    if (newest === undefined) throw configurationFault('name a database with --db')
    return [newest, ...older]
  } catch (error) {
    for (const { database } of opened) database.close()
    throw error
  }
}

function requireOneNetwork(opened: readonly OpenedDatabase[]): void {
  const [first, ...others] = opened
  if (first === undefined) return
  for (const other of others) {
    if (realpathSync(other.path) === realpathSync(first.path)) {
      throw new MigrationFault(
        'OTHER_NETWORK',
        `${other.path} is named twice; name one database of each controller`,
      )
    }
    const isOne =
      first.database.raftIndex !== null && first.database.networkId === other.database.networkId
    if (!isOne) {
      throw new MigrationFault(
        'OTHER_NETWORK',
        `${first.path} and ${other.path} are databases of different networks; name one database of each controller of one cluster`,
      )
    }
    if (first.database.version === other.database.version) continue
    throw new MigrationFault(
      'OTHER_NETWORK',
      `${first.path} has schema version ${first.database.version} and ${other.path} ${other.database.version}; run one version of OpenZiti on all controllers first`,
    )
  }
}

function noteRouterCertificates(state: State, given: ReadonlyMap<string, string>): void {
  for (const id of given.keys()) {
    if (state.inTable('router', id) !== undefined) continue
    throw configurationFault(`--router-cert names the router ${id}, which does not exist`)
  }
}

function inFile<T>({ path }: OpenedDatabase, run: () => T): T {
  return named(path, run)
}

/**
 * Runs a step; if it fails because of the content of the file, adds the file's path to the fault.
 */
function named<T>(path: string, run: () => T): T {
  try {
    return run()
  } catch (error) {
    if (!(error instanceof MigrationFault)) throw error
    throw new MigrationFault(error.code, `${path}: ${error.message}`, error)
  }
}
