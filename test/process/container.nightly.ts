import { type ChildProcess, execFile, spawn } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { connect } from 'node:tls'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sendToAdminSocket } from '../../src/cli/client/admin-socket.ts'
import { clusterOperationRequest } from '../../src/cli/client/connection.ts'
import type { OpenZitiMember } from '../../src/api/cluster/cluster-status.ts'
import { freePort, freePortBlock } from '../support/ports.ts'
import { flotilla } from '../support/program.ts'
import { until } from './support/client.ts'

// Goal: the commands of deploy/docker/compose.yml create a cluster of three controllers and a
// router without manual steps, and the same commands restart it. Method: the entrypoint itself, a
// folder instead of each volume, loopback instead of the network.

const entrypoint = resolve(import.meta.dirname, '../../deploy/docker/entrypoint.sh')
const run = promisify(execFile)
/**
 * Pause between two runs of a command that polls for progress: each run takes processor time from
 * the polled process.
 */
const COMMAND_EVERY_MS = 1000

let dir: string
let port: number
let edgePort: number
let env: NodeJS.ProcessEnv
const children = new Map<string, ChildProcess>()
const told = new Map<string, string>()

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'flotilla-container-'))
  port = await freePortBlock()
  const [linkPort, healthPort] = [await freePort(), await freePort()]
  edgePort = await freePort()
  mkdirSync(join(dir, 'bin'))
  symlinkSync(flotilla, join(dir, 'bin/flotilla'))
  for (const name of ['ctrl1', 'ctrl2', 'ctrl3', 'router1', 'tickets']) volume(name)
  env = {
    ...process.env,
    PATH: `${join(dir, 'bin')}:${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`,
    ROUTER_LINK_PORT: `${linkPort}`,
    ROUTER_HEALTH_PORT: `${healthPort}`,
    ROUTER_EDGE_PORT: `${edgePort}`,
    ROUTER_ADVERTISE: `localhost:${edgePort}`,
  }
})

afterAll(async () => {
  await Promise.all([...children.keys()].map(async (name) => await stop(name)))
  rmSync(dir, { recursive: true, force: true })
})

function volume(name: string): string {
  const path = join(dir, name)
  if (!existsSync(path)) {
    mkdirSync(path)
    chmodSync(path, 0o700)
  }
  return path
}

function start(name: string, args: readonly string[], more: NodeJS.ProcessEnv = {}): void {
  const stdio = ['ignore', 'pipe', 'pipe'] as const
  const child = spawn(entrypoint, args, { env: { ...env, ...more }, stdio: [...stdio] })
  told.set(name, '')
  const gather = (chunk: Buffer): void => {
    told.set(name, `${told.get(name)}${chunk.toString('utf8')}`)
  }
  child.stdout.on('data', gather)
  child.stderr.on('data', gather)
  children.set(name, child)
}

async function stop(name: string): Promise<number | null> {
  const child = children.get(name)
  children.delete(name)
  child?.kill('SIGTERM')
  return child === undefined ? null : await exitOf(child)
}

async function exitOf(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
  return await new Promise((done) => child.once('exit', (code) => done(code)))
}

/**
 * As in compose.yml, clients and containers use different addresses; in this test, no process
 * listens on the addresses of the clients.
 */
async function separateAddresses(): Promise<NodeJS.ProcessEnv> {
  return {
    FLOTILLA_WEB_0_ADVERTISE: `localhost:${await freePort()}`,
    CONTROLLER_URLS: [0, 1, 2].map((at) => `https://127.0.0.1:${port + at}`).join(' '),
  }
}

/** Hosts for which the certificate of the edge listener is valid. */
async function edgeHosts(): Promise<string> {
  const ca = readFileSync(join(volume('ctrl1'), 'ca.pem'))
  const socket = connect({ host: '127.0.0.1', servername: 'localhost', port: edgePort, ca })
  try {
    await once(socket, 'secureConnect')
    return socket.getPeerCertificate().subjectaltname ?? ''
  } finally {
    socket.destroy()
  }
}

/**
 * The environment of compose.yml, except for the addresses: the three hosts of compose.yml are one
 * host here.
 */
function layout(k: number, base = port): string[] {
  const bind = (offset: number): string => `127.0.0.1:${base + k - 1 + offset}`
  const binds = ['--bind-api', bind(0), '--bind-router', bind(100), '--bind-cluster', bind(200)]
  return ['--id', `ctrl${k}`, '--advertise', '127.0.0.1', ...binds]
}

async function startAll(): Promise<void> {
  const tickets = volume('tickets')
  const addresses = await separateAddresses()
  // The first controller starts last, so that all others have to wait for it.
  for (const k of [2, 3]) {
    const id = `ctrl${k}`
    start(id, ['join', volume(id), join(tickets, id), ...layout(k)], addresses)
  }
  const token = join(tickets, 'router1.jwt')
  const endpoints = [0, 1, 2].map((at) => `127.0.0.1:${port + 100 + at}`)
  start('router1', ['router', volume('router1'), 'router1', token, ...endpoints], addresses)
  start('tickets', ['tickets', volume('ctrl1'), tickets, 'ctrl2', 'ctrl3'])
  start('router-token', ['router-token', volume('ctrl1'), 'router1', token], addresses)
  const [, , ...flags] = layout(1)
  start('ctrl1', ['member', volume('ctrl1'), tickets, 'ctrl1', 'ctrl1', ...flags], addresses)
}

async function members(k: number): Promise<readonly OpenZitiMember[]> {
  const config = join(volume(`ctrl${k}`), 'config.yml')
  const { stdout } = await run(entrypoint, ['cluster', 'list', '--json', '--config', config], {
    env,
  })
  return JSON.parse(stdout) as readonly OpenZitiMember[]
}

async function health(name: string): Promise<void> {
  await run(entrypoint, ['health', volume(name)], { env })
}

/**
 * Whether `cluster list` would show this number of connected voters. It starts no process for each
 * poll.
 */
async function hasVoters(name: string, count: number): Promise<boolean> {
  const folder = join(volume(name), 'data')
  const listed = (await sendToAdminSocket(
    folder,
    clusterOperationRequest('list'),
  )) as readonly OpenZitiMember[]
  return listed.filter(({ voter, connected }) => voter && connected).length === count
}

async function untilWhole(): Promise<void> {
  const isWhole = (): Promise<boolean> => hasVoters('ctrl1', 3)
  const explain = (error: unknown): never => {
    throw new Error(`${String(error)}\n${JSON.stringify(Object.fromEntries(told), null, 2)}`)
  }
  await until('three voters are connected', isWhole, 90_000).catch(explain)
  for (const name of ['ctrl1', 'ctrl2', 'ctrl3', 'router1']) {
    const isHealthy = async (): Promise<boolean> =>
      await health(name).then(
        () => true,
        () => false,
      )
    await until(`${name} is healthy`, isHealthy, 60_000, COMMAND_EVERY_MS).catch(explain)
  }
}

test('containers form a cluster, join the cluster with tickets, enroll a router, and continue after a restart', async () => {
  await startAll()
  await untilWhole()
  expect(await edgeHosts()).toContain('DNS:localhost')
  const [{ id: first = '' } = {}] = await members(1)
  expect(first).toBe('ctrl1')

  // The helper processes exit by themselves, and leave no ticket with which another controller
  // could join.
  for (const name of ['tickets', 'router-token']) {
    const child = children.get(name)
    expect(child === undefined ? null : await exitOf(child), told.get(name)).toBe(0)
    children.delete(name)
  }
  const tickets = volume('tickets')
  expect(existsSync(join(tickets, 'ctrl2'))).toBe(false)
  expect(existsSync(join(tickets, 'ctrl3'))).toBe(false)
  expect(statSync(join(tickets, 'router1.jwt')).mode & 0o777).toBe(0o600)
  for (const name of ['ctrl2', 'ctrl3', 'ctrl1', 'router1']) {
    expect(await stop(name), told.get(name)).toBe(0)
  }

  await startAll()
  await untilWhole()
  expect(told.get('ctrl1')).not.toContain('is the first controller')
  for (const name of ['tickets', 'router-token']) {
    const child = children.get(name)
    expect(child === undefined ? null : await exitOf(child), told.get(name)).toBe(0)
    children.delete(name)
  }

  // A first controller that lost its volume must not form a second cluster while the first cluster
  // is running.
  await stop('ctrl1')
  rmSync(volume('ctrl1'), { recursive: true })
  const again = ['form', volume('ctrl1'), join(tickets, 'formed'), ...layout(1)]
  await expect(run(entrypoint, again, { env })).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('was formed before') as string,
  })
  // A container must be stoppable while it waits for a ticket.
  start('ctrl4', ['join', volume('ctrl4'), join(tickets, 'ctrl4'), ...layout(3)])
  await until('it waits for its ticket', () =>
    Promise.resolve(told.get('ctrl4')?.includes('waiting for')),
  )
  expect(await stop('ctrl4')).toBe(143)
})

test('the first pod forms a cluster only if all other pods report that they have no data, and otherwise waits for a ticket', async () => {
  const base = await freePortBlock(2)
  const meshOfSecond = base + 201
  const tickets = volume('pod-tickets')
  const member = (k: number): string[] => {
    const id = `pod-${k - 1}`
    const [, , ...flags] = layout(k, base)
    return ['member', volume(id), tickets, id, 'pod-0', ...flags]
  }
  const startFirst = (): void =>
    start('pod-0', member(1), {
      OTHERS: `127.0.0.1=${meshOfSecond}`,
      FIRST_CONTROLLER_PAUSE_MS: '100',
    })
  const says = async (name: string, text: string): Promise<void> => {
    await until(`${name} says ${text}`, () =>
      Promise.resolve(told.get(name)?.includes(text)),
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${JSON.stringify(Object.fromEntries(told), null, 2)}`)
    })
  }
  const configOf = (name: string): string => join(volume(name), 'config.yml')

  startFirst()
  await says('pod-0', 'nothing is formed before')
  expect(existsSync(configOf('pod-0')), 'the other pod may have data').toBe(false)
  start('pod-1', member(2), { WAITING_PORT: `${meshOfSecond}` })
  const invite = ['cluster', 'invite', '--config', configOf('pod-0')]
  await until('it is formed', () => hasVoters('pod-0', 1))
  await run(entrypoint, [...invite, '--out', join(tickets, 'pod-1')], { env })
  await until('two voters are connected', () => hasVoters('pod-1', 2))

  // The first controller has lost its volume. The file `formed` is missing too, as when the tickets
  // are a Secret to which nobody added that file.
  rmSync(join(tickets, 'formed'))
  expect(await stop('pod-0'), told.get('pod-0')).toBe(0)
  rmSync(volume('pod-0'), { recursive: true })
  startFirst()
  await says('pod-0', 'is a controller of a cluster that was formed before')
  await says('pod-0', 'waiting for')
  expect(existsSync(configOf('pod-0'))).toBe(false)
  expect(await stop('pod-0')).toBe(143)
})

test('the entrypoint recognizes a formed controller by its configuration, wherever the key and the data are', async () => {
  const [folder, data] = [volume('elsewhere'), volume('elsewhere-data')]
  const config = join(folder, 'config.yml')
  const isFormed = async (): Promise<boolean> =>
    await run(entrypoint, ['controller', 'formed', config], { env }).then(
      () => true,
      () => false,
    )
  expect(await isFormed()).toBe(false)
  const base = await freePortBlock(1)
  const flags = [...layout(1, base), '--data', join(data, 'log')]
  await run(entrypoint, ['cluster', 'init', config, ...flags], { env })
  expect(await isFormed()).toBe(true)
  const text = readFileSync(config, 'utf8')
  writeFileSync(config, text.replace(/controller\.key/, 'pki/its.key'))
  renameSync(join(folder, 'controller.key'), join(folder, 'pki/its.key'))
  expect(await isFormed()).toBe(true)
  // The disk of the controller is lost, but its key still exists: forming again would create a
  // second cluster.
  rmSync(join(data, 'log'), { recursive: true })
  expect(await isFormed()).toBe(true)
  writeFileSync(join(folder, '.forming'), '')
  expect(await isFormed()).toBe(false)
})
