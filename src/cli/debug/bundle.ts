import { existsSync, lstatSync, readdirSync } from 'node:fs'
import { resolve, join } from 'node:path'
import { gzipSync } from 'node:zlib'

import { type ControllerConfig, controllerOptions } from '../../config/controller/options.ts'
import { redactedValues } from '../../config/engine/option-display.ts'
import { CommandFailure, EXIT_FAILED, usageFailure } from '../../controller/command-failure.ts'
import { runAsFileOwner } from '../../controller/run-as-file-owner.ts'
import { readSurvivor } from '../../controller/recover/survivor.ts'
import { writeNewFile } from '../../pki/secret-file.ts'
import { lockDataFolder } from '../../store/folder/folder-lock.ts'
import { AdminSocketError, sendToAdminSocket } from '../client/admin-socket.ts'
import {
  type ClusterOperationName,
  loadConfigOrFail,
  clusterOperationRequest,
} from '../client/connection.ts'
import { printJson, printLine } from '../terminal/output.ts'
import { readFileTail } from '../terminal/tail.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { type DebugBundleSubject, hostFacts, type DebugBundleFile } from './bundle-parts.ts'
import { routerBundleSubject } from './router-bundle-subject.ts'
import { type TarFile, buildTarArchive } from './tar.ts'
import { tunnelBundleSubject } from './tunnel-bundle-subject.ts'

export interface BundleOptions {
  readonly config?: string
  readonly router?: string
  readonly tunnel?: string
  readonly out?: string
  readonly json?: boolean
}

/**
 * Maximum bytes of one file in the bundle; a longer file is truncated, and the manifest lists it as
 * truncated.
 */
const PART_BYTES_MAX = 4 * 1024 * 1024
const ASK_MS = 10_000

/**
 * Writes a debug bundle: information about a controller, router or tunnel on this host, without
 * secrets. If an item cannot be read, the bundle omits it and the manifest gives the reason: a
 * bundle of a stopped program is still useful.
 * @throws {CommandFailure}
 */
export async function writeBundle(options: BundleOptions): Promise<void> {
  const { kind, id, parts } = subjectOf(options)
  const now = new Date()
  const stamp = now.toISOString().replace(/[-:]|\.\d+/g, '')
  const name = `flotilla-debug-${id.replace(/[^A-Za-z0-9._-]/g, '_').slice(0, 40)}-${stamp}`
  const out = resolve(options.out ?? `${name}.tar.gz`)
  if (existsSync(out))
    throw new CommandFailure(EXIT_FAILED, `${out} already exists; choose another --out`)
  const { files, missing } = await gather(parts)
  const manifest = {
    [kind]: id,
    at: now.toISOString(),
    missing,
    parts: files.map(({ name, bytes }) => ({ name, bytes: bytes.length })),
  }
  const all = [{ name: 'manifest.json', bytes: bytesOf(manifest) }, ...files]
  const inFolder = all.map((file) => ({ ...file, name: `${name}/${file.name}` }))
  save(out, gzipSync(buildTarArchive(inFolder, now.getTime())))
  if (options.json === true) printJson({ file: out, ...manifest })
  else printLine([`wrote ${out}`, ...missing.map((one) => `not included: ${one}`)].join('\n'))
}

/** The program that the bundle describes, with the files that the bundle contains. */
function subjectOf({ config, router, tunnel }: BundleOptions): DebugBundleSubject {
  if (router !== undefined) return routerBundleSubject(router)
  if (tunnel !== undefined) return tunnelBundleSubject(tunnel)
  if (config === undefined) throw usageFailure('name a configuration: --config FILE')
  const loaded = loadConfigOrFail(config)
  return { kind: 'controller', id: loaded.id, parts: partsOf(loaded) }
}

function save(out: string, bytes: Uint8Array): void {
  try {
    writeNewFile(out, bytes, 0o600)
  } catch (error) {
    const message = `${out} cannot be written (${errorMessage(error)}); choose another --out`
    throw new CommandFailure(EXIT_FAILED, message, error)
  }
}

interface Gathered {
  readonly files: readonly TarFile[]
  readonly missing: readonly string[]
}

async function gather(parts: readonly DebugBundleFile[]): Promise<Gathered> {
  const files: TarFile[] = []
  const missing: string[] = []
  for (const { name, read } of parts) {
    try {
      const bytes = bytesOf(await read())
      if (bytes.length > PART_BYTES_MAX) missing.push(`${name}: cut off at ${PART_BYTES_MAX} bytes`)
      files.push({ name, bytes: bytes.subarray(0, PART_BYTES_MAX) })
    } catch (error) {
      missing.push(`${name}: ${errorMessage(error)}`)
    }
  }
  return { files, missing }
}

function partsOf(config: ControllerConfig): DebugBundleFile[] {
  const ask = (operation: ClusterOperationName) => () =>
    sendToAdminSocket(config.data, clusterOperationRequest(operation, {}, ASK_MS))
  const facts = askOnce(ask('debug'))
  const of = (key: string) => async () => (await facts())[key]
  return [
    { name: 'configuration.json', read: () => redactedValues(controllerOptions, config) },
    { name: 'host.json', read: () => hostFacts(config.data) },
    { name: 'data-folder.txt', read: () => listingOf(config.data) },
    { name: 'log.jsonl', read: () => logOf(config) },
    { name: 'status.json', read: ask('status') },
    { name: 'members.json', read: ask('list') },
    { name: 'upgrade.json', read: ask('upgrade-status') },
    { name: 'version.json', read: of('version') },
    { name: 'health.json', read: of('node') },
    { name: 'raft.json', read: of('vitals') },
    { name: 'process.json', read: of('process') },
    { name: 'limits.json', read: of('limits') },
    { name: 'metrics.txt', read: of('metrics') },
    { name: 'disk.json', read: () => diskOf(config, facts) },
  ]
}

type Facts = () => Promise<Readonly<Record<string, unknown>>>

/**
 * Wraps `ask` so that it runs once, because several files of the bundle come from its response.
 */
function askOnce(ask: () => Promise<unknown>): Facts {
  let asked: ReturnType<Facts> | null = null
  return () => (asked ??= ask() as ReturnType<Facts>)
}

function logOf({ logFile }: ControllerConfig): Buffer {
  if (logFile.path !== null) return readFileTail(logFile.path, LOG_TAIL_BYTES)
  throw new Error('logs go to standard output; collect them from the service manager (journalctl)')
}

/**
 * Log and state of a stopped controller, read from its disk; no other process may use the data
 * folder meanwhile.
 */
async function diskOf({ data }: ControllerConfig, facts: Facts): Promise<unknown> {
  const isDown = await facts().then(
    () => false,
    (error: unknown) => error instanceof AdminSocketError && error.code === 'NOT_RUNNING',
  )
  if (!isDown) throw new Error('read only while the controller is stopped')
  return await runAsFileOwner(data, async () => {
    const lock = await lockDataFolder(data)
    try {
      return (await readSurvivor(data)).survivor
    } finally {
      await lock.release()
    }
  })
}

function bytesOf(value: unknown): Buffer {
  if (Buffer.isBuffer(value)) return value
  return Buffer.from(typeof value === 'string' ? value : `${JSON.stringify(value, null, 2)}\n`)
}

const LISTED_MAX = 10_000
/** Maximum bytes that are read from the end of the log file. */
const LOG_TAIL_BYTES = 2 * 1024 * 1024

/**
 * Names, sizes, modes and times of the files and folders below a folder, one line each, at most
 * {@link LISTED_MAX}.
 */
function listingOf(folder: string): string {
  const lines: string[] = []
  const visit = (path: string, shown: string): void => {
    for (const name of readdirSync(path).sort()) {
      if (lines.length >= LISTED_MAX) return
      const found = lstatSync(join(path, name))
      const mode = (found.mode & 0o777).toString(8)
      const time = found.mtime.toISOString()
      const kind = found.isDirectory() ? 'd' : found.isFile() ? '-' : '?'
      lines.push(`${kind} ${mode} ${String(found.size).padStart(12)} ${time} ${shown}${name}`)
      if (found.isDirectory()) visit(join(path, name), `${shown}${name}/`)
    }
  }
  visit(folder, '')
  return `${lines.join('\n')}\n`
}
