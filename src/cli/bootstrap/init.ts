import { printWarning } from '../terminal/short-host-name.ts'
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

import { passwordFault } from '../../auth/factors/password-rules.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { systemClock } from '../../lib/clock.ts'
import { isTrustDomain } from '../../lib/text/names.ts'
import { writeSecretFile } from '../../pki/secret-file.ts'
import { readDataIdentity } from '../../store/log/data-identity.ts'
import { ADMIN_FILE_NAME, type AdminFile } from './admin-file.ts'
import {
  type ConfigFlags,
  planConfig,
  type PlannedConfig,
  refuseForeignPlannedFolders,
} from './config-from-flags.ts'
import {
  CommandFailure,
  EXIT_FAILED,
  EXIT_USAGE,
  toOperatorFailure,
} from '../../controller/command-failure.ts'
import {
  createCluster,
  isClusterCreationInterrupted,
  clusterRootKeyPath,
} from './create-cluster.ts'
import { readSuppliedAuthorities } from './supplied-authorities.ts'
import { printJson, printLine } from '../terminal/output.ts'
import { firstStartCommand } from '../terminal/start-command.ts'
import { readSecretInput } from '../terminal/secret-input.ts'

/** 18 bytes give 24 characters of base64url: 144 random bits. */
const PASSWORD_BYTES = 18

export interface InitOptions extends ConfigFlags {
  readonly admin: string
  readonly passwordFile?: string
  readonly clusterName?: string
  readonly json?: boolean
}

/** Output of `cluster init --json`. */
export interface InitResult {
  readonly id: string
  readonly clusterId: string
  readonly trustDomain: string
  readonly config: string
  readonly ca: string
  /** Path of the root key; null when the authority was supplied. */
  readonly rootKey: string | null
  readonly admin: string
  /** File with the generated password (mode 0600); null when the user chose the password. */
  readonly adminFile: string | null
}

/**
 * `cluster init CONFIG` creates the first controller of a new cluster, ready to run. Repeating it
 * is safe: it starts over after an interrupted attempt, and refuses to change a controller that is
 * complete.
 * @throws {CommandFailure} exit 2 for flags and configuration, otherwise 1, for example for files
 * that it would have to overwrite.
 */
export async function initCluster(path: string, options: InitOptions): Promise<void> {
  const planned = planConfig(path, options, trustDomainOf(options))
  refuseForeignPlannedFolders(planned)
  refuseOtherTrustDomain(planned, options)
  const password =
    options.passwordFile === undefined
      ? null
      : checkPassword(readSecretInput(options.passwordFile, 'the password of the administrator'))
  const result = await initController(planned, options.admin, password)
  printWarning(planned.warning)
  if (options.json === true) printJson(result)
  else printResult(result)
}

/**
 * @param password null: this function generates a password and writes it to a separate file.
 * @throws {CommandFailure} exit 1.
 */
export async function initController(
  planned: PlannedConfig,
  adminName: string,
  password: string | null,
): Promise<InitResult> {
  // Files created here are readable only by their owner, unless they are meant to be public.
  process.umask(0o077)
  const { config, folder } = planned
  refuseFormed(config)
  const nowMs = systemClock.nowMs()
  const isSupplied = config.identity.signer.cert !== null
  const isRepeated = isClusterCreationInterrupted(folder, isSupplied)
  const supplied = readSuppliedAuthorities(config, isRepeated, nowMs)
  if (!isRepeated) refuseOverwriting(planned, isSupplied)
  const drawn = password ?? randomBytes(PASSWORD_BYTES).toString('base64url')
  const adminFile = password === null ? join(folder, ADMIN_FILE_NAME) : null
  try {
    const { clusterId, rootKeyPath } = await createCluster({
      controllers: [planned],
      adminName,
      password: drawn,
      nowMs,
      supplied,
      beforeData: () => {
        if (adminFile !== null) writeAdminFile(adminFile, config, adminName, drawn)
      },
    })
    return {
      id: config.id,
      clusterId,
      trustDomain: config.trustDomain,
      config: planned.path,
      ca: config.identity.ca,
      rootKey: rootKeyPath,
      admin: adminName,
      adminFile,
    }
  } catch (error) {
    throw toOperatorFailure(error)
  }
}

function trustDomainOf({ clusterName }: InitOptions): string {
  if (clusterName === undefined) return `flotilla-${randomBytes(4).toString('hex')}.internal`
  if (isTrustDomain(clusterName)) return clusterName
  throw new CommandFailure(
    EXIT_USAGE,
    `--cluster-name: expected lower-case letters, digits, '.', '-', '_', found ${JSON.stringify(clusterName)}`,
  )
}

function refuseOtherTrustDomain(planned: PlannedConfig, { clusterName }: InitOptions): void {
  const { trustDomain } = planned.config
  if (clusterName === undefined || clusterName === trustDomain) return
  throw new CommandFailure(
    EXIT_USAGE,
    `${planned.path} exists with trustDomain ${trustDomain}, not ${clusterName}; omit --cluster-name, or edit the file`,
  )
}

function checkPassword(password: string): string {
  // Checks the password against the default auth policy, the only one in a new network.
  const reason = passwordFault(undefined, password)
  if (reason === null) return password
  throw new CommandFailure(EXIT_FAILED, `choose another password: ${reason}`)
}

function refuseFormed({ data, id }: ControllerConfig): void {
  if (!existsSync(data) || readdirSync(data).length === 0) return
  let whose = 'is not empty and stays unchanged'
  try {
    const identity = readDataIdentity(data)
    whose = `belongs to controller ${identity.nodeId} of cluster ${identity.clusterId} already`
    if (identity.nodeId === id) whose += ` and is ready; start it with 'flotilla controller run'`
  } catch {
    // The folder exists but contains no data of a controller; the code below refuses to overwrite
    // it.
  }
  throw new CommandFailure(
    EXIT_FAILED,
    `${data} ${whose}; name another data folder to create another cluster`,
  )
}

/**
 * Refuses to overwrite existing keys, certificates and credentials. An existing root key may belong
 * to another cluster, which could never renew its issuing authority without this key.
 */
function refuseOverwriting({ config, folder }: PlannedConfig, isSupplied: boolean): void {
  const { cert, key, ca } = config.identity
  const made = isSupplied ? [] : [clusterRootKeyPath(folder), cert, key, ca]
  const found = [...made, join(folder, ADMIN_FILE_NAME)].find((path) => existsSync(path))
  if (found === undefined) return
  throw new CommandFailure(
    EXIT_FAILED,
    `${found} already exists and stays unchanged; move it away, or put CONFIG in a separate folder`,
  )
}

function writeAdminFile(
  path: string,
  { web, identity }: ControllerConfig,
  username: string,
  password: string,
): void {
  const admin: AdminFile = {
    username,
    password,
    controllers: web.map(({ advertise }) => `https://${advertise}`),
    ca: identity.ca,
  }
  writeSecretFile(path, `${JSON.stringify(admin, null, 2)}\n`)
}

function printResult(result: InitResult): void {
  const { id, clusterId, rootKey, admin, adminFile, config } = result
  printLine(
    `created cluster ${clusterId} (${result.trustDomain}) with ${id} as its first controller`,
  )
  printLine(
    adminFile === null
      ? `administrator: ${admin}, with the given password`
      : `administrator: ${admin}; the password is in ${adminFile}`,
  )
  printLine(`CA certificate for clients: ${result.ca}`)
  printLine(
    rootKey === null
      ? 'certificates are signed by the authority of identity.signer; remove its key from this host'
      : `root key: ${rootKey}; move it offline, it is only needed to renew the issuing authority`,
  )
  printLine(`start it with: ${firstStartCommand('controller', config)}`)
}
