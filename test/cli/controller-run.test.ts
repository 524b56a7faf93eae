import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, generateKeyPairSync } from 'node:crypto'
import {
  closeSync,
  cpSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { sendToAdminSocket } from '../../src/cli/client/admin-socket.ts'
import { clusterOperationRequest } from '../../src/cli/client/connection.ts'
import type { ClusterStatus } from '../../src/api/cluster/cluster-status.ts'
import type { ControllerPlan, QuickstartPlan } from '../../src/cli/quickstart/plan.ts'
import { requirePresent } from '../../src/lib/assert.ts'
import {
  issueControllerCertificateForKey,
  renewIssuingAuthority,
} from '../../src/pki/authority/authority.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import { readCertsOnly } from '../support/read-certs-only.ts'
import { flotilla, layOut, run } from './support.ts'
import { eventually } from '../support/eventually.ts'

// Goal: a controller process starts, serves, stops and fails as the documentation describes.

// High, because a start takes a second on an idle machine and much longer on a busy one.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

let folder = ''
let plan: QuickstartPlan
let controller: ControllerPlan
let started: Running[] = []

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-run-'))
  plan = await layOut(folder, 1)
  controller = requirePresent(plan.controllers[0], 'ctrl1')
  started = []
})
afterEach(async () => {
  for (const { child, ended } of started) {
    child.kill('SIGKILL')
    await ended
  }
  rmSync(folder, { recursive: true, force: true })
})

interface Running {
  readonly child: ChildProcess
  readonly ended: Promise<number | null>
  output: string
}

function start(env: NodeJS.ProcessEnv = {}): Running {
  const child = spawn(flotilla, ['controller', 'run', controller.configPath], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = new Promise<number | null>((done) => child.once('close', done))
  const running: Running = { child, ended, output: '' }
  child.stdout.on('data', (chunk: Buffer) => (running.output += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (running.output += chunk.toString()))
  started.push(running)
  return running
}

const leads = async (): Promise<void> => {
  const status = (await sendToAdminSocket(
    controller.dataFolder,
    clusterOperationRequest('status'),
  )) as ClusterStatus
  expect(status.leaderId).toBe('ctrl1')
}
const until = (check: () => unknown): Promise<unknown> => eventually(check, { interval: 50 })

interface Fetched {
  readonly status: number | undefined
  readonly text: string
}

function fetched(path: string, ca: string): Promise<Fetched> {
  const { webPort: port } = controller
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path, ca, agent: false }, (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (chunk: string) => (text += chunk))
      answer.on('end', () => resolve({ status: answer.statusCode, text }))
    })
      .on('error', reject)
      .end()
  })
}

async function versionStatus(): Promise<number | undefined> {
  const ca = readFileSync(join(plan.dir, 'ca.pem'), 'utf8')
  return (await fetched('/edge/client/v1/version', ca)).status
}

const lastLine = ({ output }: Running): string => output.trimEnd().split('\n').at(-1) ?? ''

test.each(['true', 'false'])(
  'a controller serves requests until SIGTERM, and then removes its pid file and socket (threads: %s)',
  async (threads) => {
    const running = start({ FLOTILLA_THREADS: threads })
    await until(leads)
    await until(() => expect(existsSync(join(controller.folder, 'pid'))).toBe(true))
    expect(readFileSync(join(controller.folder, 'pid'), 'utf8')).toBe(`${running.child.pid}\n`)
    expect(await versionStatus()).toBe(200)
    running.child.kill('SIGTERM')
    expect(await running.ended, running.output).toBe(0)
    expect(existsSync(join(controller.folder, 'pid'))).toBe(false)
    expect(existsSync(join(controller.dataFolder, 'admin.sock'))).toBe(false)
    expect(lastLine(running)).toContain('controller stopped')
  },
)

test('a controller publishes the CAs of its certificate, and at SIGHUP rejects a broken certificate file', async () => {
  const running = start()
  await until(leads)
  const ca = readFileSync(join(plan.dir, 'ca.pem'), 'utf8')
  // The root and the authority below it; the authority can sign only after the controller has
  // decrypted its secret.
  await until(async () => {
    const { text } = await fetched('/.well-known/est/cacerts', ca)
    const told = readCertsOnly(text)
    expect(parseCertificates(told)).toHaveLength(2)
    expect((await fetched('/version', told)).status).toBe(200)
  })
  writeFileSync(join(controller.folder, 'cert.pem'), 'half a certifi')
  running.child.kill('SIGHUP')
  await until(() => expect(running.output).toContain('certificate files rejected: '))
  expect(await versionStatus()).toBe(200)
  running.child.kill('SIGTERM')
  expect(await running.ended, running.output).toBe(0)
})

test('a running controller applies changed options at a reload, and refuses an invalid file', async () => {
  const running = start()
  await until(leads)
  const text = readFileSync(controller.configPath, 'utf8')
  const backups = join(folder, 'backups')
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const recipient = publicKey.export({ type: 'spki', format: 'pem' })
  writeFileSync(join(controller.folder, 'backup.pem'), recipient)
  const changed = `${text}logLevel: debug\nthreads: false\nbackup: {folder: ${backups}, recipient: backup.pem}\n`
  writeFileSync(controller.configPath, changed)
  const reload = ['controller', 'reload', controller.configPath]
  expect(await run(reload)).toEqual({
    code: 0,
    stdout: [
      'logLevel: info -> debug, in force',
      `backup.folder: null -> ${backups}, in force`,
      `backup.recipient: null -> ${join(controller.folder, 'backup.pem')}, in force`,
      'threads: true -> false, needs a restart',
      '',
    ].join('\n'),
    stderr: '',
  })
  await until(() => expect(readdirSync(backups)).toEqual([expect.stringMatching(/\.backup$/)]))
  writeFileSync(controller.configPath, `${changed}limits: {connectionsMax: none}\n`)
  const refused = await run(reload)
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringMatching(/config\.yml:\d+: limits\.connectionsMax: expected an integer/),
  ])
  running.child.kill('SIGHUP')
  await until(() => expect(running.output).toContain('configuration rejected: '))
  writeFileSync(controller.configPath, changed)
  writeFileSync(join(controller.folder, 'cert.pem'), 'half a certifi')
  expect(await run(reload)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^flotilla: certificate files rejected: /),
  })
  expect(await versionStatus()).toBe(200)
  running.child.kill('SIGTERM')
  expect(await running.ended, running.output).toBe(0)
})

test('a second controller on the same folder is refused, and after a kill -9 the next one starts without clean-up', async () => {
  const first = start()
  await until(leads)
  const second = start()
  expect(await second.ended).toBe(1)
  expect(second.output).toMatch(/the data folder \S+ is in use by another process \(pid \d+\)/)
  await leads()
  first.child.kill('SIGKILL')
  await first.ended
  const third = start()
  await until(leads)
  third.child.kill('SIGINT')
  expect(await third.ended, third.output).toBe(0)
})

test('a controller does not start with a key that does not match its member record', async () => {
  const data = controller.dataFolder
  const other = await layOut(mkdtempSync(join(folder, 'other-')), 1)
  rmSync(data, { recursive: true })
  cpSync(join(other.dir, 'ctrl1', 'data'), data, { recursive: true })
  for (const time of ['first', 'second']) {
    const running = start()
    expect(await running.ended, time).toBe(1)
    // Other tasks that are still running may log a last line.
    expect(running.output).toMatch(
      /^flotilla: .*has another key than the member record of ctrl1 in /m,
    )
  }
})

test('a controller with an expired certificate starts only after pki renew --root-key, and then renews the certificate again without a command', async () => {
  const first = start()
  await until(leads)
  first.child.kill('SIGTERM')
  await first.ended
  await expireLeaf()
  const refused = start()
  expect(await refused.ended).toBe(1)
  expect(lastLine(refused)).toContain("'pki renew --root-key' here")

  const words = ['pki', 'renew', '--config', controller.configPath, '--root-key']
  const renewed = await run([...words, join(plan.dir, 'ctrl1', 'pki', 'root.key')])
  expect([renewed.code, renewed.stderr]).toEqual([0, ''])
  const running = start()
  await until(leads)
  await until(() => expect(running.output).toContain('certificate renewed: '))
  const [leaf] = parseCertificates(readFileSync(join(controller.folder, 'cert.pem'), 'utf8'))
  expect(leaf.notAfterMs - Date.now()).toBeGreaterThan(300 * 24 * 60 * 60 * 1000)
  expect(await versionStatus()).toBe(200)
  running.child.kill('SIGTERM')
  expect(await running.ended, running.output).toBe(0)
})

/**
 * Simulates that a year has passed: a certificate with the same key and names, from an authority
 * with the cluster's name, which expired a day ago.
 */
async function expireLeaf(): Promise<void> {
  const DAY_MS = 24 * 60 * 60 * 1000
  const path = join(controller.folder, 'cert.pem')
  const [leaf, issuing] = parseCertificates(readFileSync(path, 'utf8'))
  const root = {
    certificatePem: readFileSync(join(plan.dir, 'ca.pem'), 'utf8'),
    privateKeyPem: readFileSync(join(plan.dir, 'ctrl1', 'pki', 'root.key'), 'utf8'),
  }
  const validity = { notBeforeMs: Date.now() - 9 * DAY_MS, notAfterMs: Date.now() - DAY_MS }
  const authority = await renewIssuingAuthority({
    root,
    presentPem: requirePresent(issuing, 'the issuing authority').pem,
    publicKeySpki: null,
    validity,
  })
  const certificatePem = await issueControllerCertificateForKey({
    issuer: { ...authority, privateKeyPem: authority.privateKeyPem ?? '' },
    trustDomain: new URL(leaf.uris[0] ?? '').host,
    id: 'ctrl1',
    hosts: leaf.dnsNames,
    publicKeySpki: Uint8Array.from(leaf.native.publicKey.export({ type: 'spki', format: 'der' })),
    validity,
  })
  writeFileSync(path, certificatePem)
}

test('a controller with a damaged log does not start: it prints the name of the damaged file, and does not change this file', async () => {
  const name = requirePresent(
    readdirSync(join(controller.dataFolder, 'wal')).find((one) => one.endsWith('.seg')),
    'a segment',
  )
  const segment = join(controller.dataFolder, 'wal', name)
  // Damages the first record, which valid ones follow.
  flipByte(segment, 4096 + 100)
  const before = digestOf(segment)
  const running = start()
  expect(await running.ended).toBe(1)
  expect(lastLine(running)).toContain(segment)
  expect(running.output).not.toContain('    at ')
  expect(digestOf(segment)).toBe(before)
})

function flipByte(path: string, at: number): void {
  const bytes = readFileSync(path)
  const file = openSync(path, 'r+')
  writeSync(file, Buffer.of((bytes[at] ?? 0) ^ 0xff), 0, 1, at)
  closeSync(file)
  expect(statSync(path).size).toBe(bytes.length)
}

function digestOf(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}

test('a controller with damaged meta files (term and vote) logs this as an error, and requests re-admission', async () => {
  const first = start()
  await eventually(() => expect(first.output).toContain('controller started'))
  first.child.kill('SIGTERM')
  await first.ended
  for (const name of ['meta.0', 'meta.1']) {
    writeFileSync(join(controller.dataFolder, name), Buffer.alloc(4096, 1))
  }
  // Without the list of members, the controller cannot know that it is the only voter.
  rmSync(join(controller.dataFolder, 'ROSTER'))
  const second = start({ FLOTILLA_CLUSTER_SEEDS: '127.0.0.1:1' })
  await eventually(() =>
    expect(second.output).toContain('requesting re-admission from 127.0.0.1:1'),
  )
  const line = second.output.split('\n').find((one) => one.includes('can no longer vote'))
  expect(JSON.parse(line ?? '{}')).toMatchObject({ level: 'error', id: controller.id })
})

test('a controller with a configured log file writes its log only to this file', async () => {
  const path = join(folder, 'controller.log')
  const running = start({ FLOTILLA_LOG_FILE_PATH: path })
  await eventually(() => expect(readFileSync(path, 'utf8')).toContain('controller started'), {
    timeout: 60_000,
  })
  running.child.kill('SIGTERM')
  expect(await running.ended).toBe(0)
  expect(readFileSync(path, 'utf8').trimEnd()).toMatch(/controller stopped"}$/)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(running.output).toBe('')
})

test('a controller does not start if its log file is not writable, and prints the configuration key of the file', async () => {
  const running = start({ FLOTILLA_LOG_FILE_PATH: join(folder, 'nowhere', 'controller.log') })
  expect(await running.ended).toBe(1)
  expect(running.output).toContain('logFile.path')
  expect(running.output).toContain('cannot be written')
})
