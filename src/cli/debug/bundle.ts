import { existsSync, lstatSync, readdirSync, statfsSync } from 'node:fs'
import { resolve, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { arch, availableParallelism, freemem, loadavg, release, totalmem, uptime } from 'node:os'

import { type ControllerConfig, controllerOptions } from '../../config/controller/options.ts'
import { redactedValues } from '../../config/engine/shown.ts'
import { CommandFailure, EXIT_FAILED } from '../../controller/failure.ts'
import { runAsOwnerOf } from '../../controller/as-owner.ts'
import { readSurvivor } from '../../controller/recover/survivor.ts'
import { writeNewFile } from '../../pki/key-file.ts'
import { lockDataFolder } from '../../store/folder/folder-lock.ts'
import { AdminError, sendToAdminSocket } from '../client/admin-socket.ts'
import { type ClusterVerb, loadConfigOrFail, clusterVerbRequest } from '../client/connection.ts'
import { printJson, printLine } from '../terminal/output.ts'
import { readTail } from '../terminal/tail.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { programRevision, programVersion } from '../../controller/version.ts'

export interface BundleOptions {
  readonly config: string
  readonly out?: string
  readonly json?: boolean
}

/**
 * Maximum bytes of one file in the bundle; a longer file is truncated, and the manifest says so.
 */
const PART_BYTES_MAX = 4 * 1024 * 1024
const ASK_MS = 10_000

interface Part {
  readonly name: string
  /** @throws any error; the bundle contains its message instead. */
  readonly read: () => unknown
}

/**
 * Writes the information that support needs about this controller, without secrets. An item that
 * cannot be read is left out, and the manifest gives the reason: a bundle of a stopped controller
 * is still useful.
 * @throws {CommandFailure}
 */
export async function writeBundle(options: BundleOptions): Promise<void> {
  const config = loadConfigOrFail(options.config)
  const now = new Date()
  const stamp = now.toISOString().replace(/[-:]|\.\d+/g, '')
  const name = `flotilla-debug-${config.id}-${stamp}`
  const out = resolve(options.out ?? `${name}.tar.gz`)
  if (existsSync(out))
    throw new CommandFailure(EXIT_FAILED, `${out} already exists; choose another --out`)
  const { files, missing } = await gather(config)
  const manifest = {
    controller: config.id,
    at: now.toISOString(),
    missing,
    parts: files.map(({ name, bytes }) => ({ name, bytes: bytes.length })),
  }
  const all = [{ name: 'manifest.json', bytes: bytesOf(manifest) }, ...files]
  const inFolder = all.map((file) => ({ ...file, name: `${name}/${file.name}` }))
  save(out, gzipSync(tarOf(inFolder, now.getTime())))
  if (options.json === true) printJson({ file: out, ...manifest })
  else printLine([`wrote ${out}`, ...missing.map((one) => `not included: ${one}`)].join('\n'))
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

async function gather(config: ControllerConfig): Promise<Gathered> {
  const files: TarFile[] = []
  const missing: string[] = []
  for (const { name, read } of partsOf(config)) {
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

function partsOf(config: ControllerConfig): Part[] {
  const ask = (verb: ClusterVerb) => () =>
    sendToAdminSocket(config.data, clusterVerbRequest(verb, {}, ASK_MS))
  const facts = askOnce(ask('debug'))
  const of = (key: string) => async () => (await facts())[key]
  return [
    { name: 'configuration.json', read: () => redactedValues(controllerOptions, config) },
    { name: 'host.json', read: () => hostFacts(config) },
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

/** Seven parts come from one answer. */
function askOnce(ask: () => Promise<unknown>): Facts {
  let asked: ReturnType<Facts> | null = null
  return () => (asked ??= ask() as ReturnType<Facts>)
}

function logOf({ logFile }: ControllerConfig): Buffer {
  if (logFile.path !== null) return readTail(logFile.path, LOG_TAIL_BYTES)
  throw new Error('logs go to standard output; collect them from the service manager (journalctl)')
}

/** Content of log and state of a stopped controller; no other process may read them meanwhile. */
async function diskOf({ data }: ControllerConfig, facts: Facts): Promise<unknown> {
  const isDown = await facts().then(
    () => false,
    (error: unknown) => error instanceof AdminError && error.code === 'NOT_RUNNING',
  )
  if (!isDown) throw new Error('read only while the controller is stopped')
  return await runAsOwnerOf(data, async () => {
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
/** Bytes from the end of the log file. */
const LOG_TAIL_BYTES = 2 * 1024 * 1024

/** This program and the machine that it runs on. */
function hostFacts({ data }: ControllerConfig): unknown {
  const { bavail, blocks, bsize } = statfsSync(data)
  return {
    program: { version: programVersion(), revision: programRevision(), node: process.version },
    system: { platform: process.platform, arch: arch(), release: release(), load: loadavg() },
    processors: availableParallelism(),
    uptimeSeconds: Math.round(uptime()),
    memory: { totalBytes: totalmem(), freeBytes: freemem() },
    dataFolder: { freeBytes: bavail * bsize, totalBytes: blocks * bsize },
    // The values may be secret; the names explain differences from the file.
    variables: Object.keys(process.env)
      .filter((name) => name.startsWith('FLOTILLA_'))
      .sort(),
  }
}

/**
 * Names, sizes, modes and times of everything below a folder, one line each, without file contents.
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

/** Plain files in the tar format of POSIX (ustar), which every tar can read. */
interface TarFile {
  /** Up to 100 bytes. */
  readonly name: string
  readonly bytes: Uint8Array
}

const BLOCK_BYTES = 512
const NAME_BYTES_MAX = 100

/** One archive; the caller compresses it. */
function tarOf(files: readonly TarFile[], mtimeMs: number): Buffer {
  const blocks = files.flatMap(({ name, bytes }) => [
    headerOf(name, bytes.length, mtimeMs),
    padded(bytes),
  ])
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK_BYTES)])
}

function padded(bytes: Uint8Array): Buffer {
  const rest = (BLOCK_BYTES - (bytes.length % BLOCK_BYTES)) % BLOCK_BYTES
  return Buffer.concat([bytes, Buffer.alloc(rest)])
}

function headerOf(name: string, size: number, mtimeMs: number): Buffer {
  if (Buffer.byteLength(name) > NAME_BYTES_MAX) throw new RangeError(`${name} is too long for tar`)
  const header = Buffer.alloc(BLOCK_BYTES)
  header.write(name, 0)
  header.write('0000600\0', 100)
  header.write('0000000\0', 108)
  header.write('0000000\0', 116)
  header.write(octal(size), 124)
  header.write(octal(Math.floor(mtimeMs / 1000)), 136)
  // The checksum is computed with its own field set to blanks.
  header.write('        ', 148)
  header.write('0', 156)
  header.write('ustar\x0000', 257, 'latin1')
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}

function octal(value: number): string {
  return `${value.toString(8).padStart(11, '0')}\0`
}
