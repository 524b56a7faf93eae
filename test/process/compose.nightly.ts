import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { connect } from 'node:tls'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { OpenZitiMember } from '../../src/api/cluster/cluster-status.ts'
import { freePort } from '../support/ports.ts'
import { flotilla } from '../support/program.ts'
import { type AdminFile, until } from './support/client.ts'

// Goal: after `compose up`, everything works from the host of the containers without another step,
// and survives restarts and lost volumes. Method: real containers of the image, the program on the
// host, and a service on the host that the host reaches through the router.

const ROOT = resolve(import.meta.dirname, '../..')
const COMPOSE_FILE = join(ROOT, 'deploy/docker/compose.yml')
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  version: string
}
const IMAGE = `flotilla:${version}`
const FORMER_IMAGE = 'flotilla:0.2.0'
/** The compose file of the former release, without its comments. */
const FORMER_COMPOSE_FILE = join(ROOT, 'test/releases/compose-0.2.0.yml')
const CONFIG = '/var/lib/flotilla/config.yml'
const SLOW_MS = 180_000
/** Pause between two runs of a command that polls. */
const COMMAND_EVERY_MS = 1000

interface Tool {
  readonly engine: 'docker' | 'podman'
  readonly compose: readonly [string, ...string[]]
}

const tools: readonly Tool[] = [
  { engine: 'docker', compose: ['docker', 'compose'] },
  { engine: 'podman', compose: ['podman-compose'] },
]

const succeeds = ([command = '', ...words]: readonly string[]): boolean =>
  spawnSync(command, words, { stdio: 'ignore' }).status === 0

const tool = tools.find(({ compose }) => succeeds([...compose, 'version']))
const missing = missingTool(IMAGE)
const missingFormer = missing ?? missingTool(FORMER_IMAGE)

/** The reason why no container can run, in parentheses; null if containers of the image can run. */
function missingTool(image: string): string | null {
  if (tool === undefined) return '(skipped: neither docker compose nor podman-compose runs here)'
  const words = ['run', '--rm', '--network', 'none', image, 'version']
  if (succeeds([tool.engine, ...words])) return null
  return `(skipped: ${tool.engine} runs no container of ${image} here; deploy/README.md builds the image)`
}

const run = promisify(execFile)
const project = `flotilla-test-${process.pid}`
const children: ChildProcess[] = []
let folder: string
let override: string
let env: NodeJS.ProcessEnv
let ports: { readonly controllers: readonly number[]; readonly edge: number }
let admin: AdminFile
let page: Server

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-compose-'))
  const controllers = [await freePort(), await freePort(), await freePort()]
  ports = { controllers, edge: await freePort() }
  const named = controllers.map((port, at) => [`FLOTILLA_CTRL${at + 1}_PORT`, `${port}`])
  env = {
    ...process.env,
    ...Object.fromEntries(named),
    FLOTILLA_ROUTER1_PORT: `${ports.edge}`,
    XDG_CONFIG_HOME: join(folder, 'config'),
  }
  override = join(folder, 'limits.yml')
  writeFileSync(override, limitsOfThisHost())
  page = createServer((_request, response) => response.end('through the router'))
  page.listen(0, '127.0.0.1')
  await once(page, 'listening')
})

afterAll(async () => {
  for (const child of children) child.kill('SIGTERM')
  page.close()
  if (missing === null) await compose('down', '--volumes')
  rmSync(folder, { recursive: true, force: true })
})

/**
 * If this host is itself a container, the containers may not exceed the resource limits of this
 * host.
 */
function limitsOfThisHost(): string {
  const { stdout } = spawnSync('bash', ['-c', 'ulimit -Hn; ulimit -Hu'], { encoding: 'utf8' })
  const [nofile, nproc] = stdout.split('\n').map((most) => Math.min(Number(most) || 10_000, 10_000))
  const services = ['ctrl1', 'ctrl2', 'ctrl3', 'tickets', 'router-token', 'router1']
  const ulimits = `{ nofile: ${nofile}, nproc: ${nproc} }`
  return `services:\n${services.map((name) => `  ${name}: { ulimits: ${ulimits} }\n`).join('')}`
}

async function compose(...words: readonly string[]): Promise<string> {
  return await composeWith(COMPOSE_FILE, ...words)
}

async function composeWith(file: string, ...words: readonly string[]): Promise<string> {
  const [command, ...first] = tool?.compose ?? ['']
  const files = ['--file', file, '--file', override]
  const { stdout } = await run(command, [...first, '-p', project, ...files, ...words], { env })
  return stdout
}

async function inside(service: string, ...words: readonly string[]): Promise<string> {
  return await compose('exec', '-T', service, ...words)
}

async function onHost(...words: readonly string[]): Promise<string> {
  return (await run(flotilla, words, { env })).stdout
}

/** Removes containers and the volume of one of them, as if the disk of that container were lost. */
async function loseVolume(name: string): Promise<void> {
  await compose('down', name)
  await run(tool?.engine ?? '', ['volume', 'rm', `${project}_${name}`])
}

async function untilThreeVoters(): Promise<void> {
  await until(
    'three voters are connected',
    async () => {
      const words = ['flotilla', 'cluster', 'list', '--json', '--config', CONFIG]
      const text = await inside('ctrl1', ...words).catch(() => '[]')
      const members = JSON.parse(text) as readonly OpenZitiMember[]
      return members.filter(({ voter, connected }) => voter && connected).length === 3
    },
    SLOW_MS,
    COMMAND_EVERY_MS,
  )
}

/** Reads the password and the CA certificate, as an operator reads them. */
async function readAdmin(): Promise<void> {
  const ca = join(folder, 'ca.pem')
  const text = await inside('ctrl1', 'cat', '/var/lib/flotilla/admin.json')
  writeFileSync(ca, await inside('ctrl1', 'cat', '/var/lib/flotilla/ca.pem'))
  admin = { ...(JSON.parse(text) as AdminFile), ca }
}

/**
 * Whether a client that trusts only the CA of the cluster accepts the certificate at this port for
 * this server name.
 */
async function isTrusted(port: number, servername: string): Promise<boolean> {
  const ca = readFileSync(admin.ca)
  const name = /^[0-9.]+$/.test(servername) ? {} : { servername }
  const socket = connect({ host: '127.0.0.1', port, ca, ...name })
  try {
    await once(socket, 'secureConnect')
    return socket.authorized
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

async function untilTrusted(name: string): Promise<void> {
  for (const port of [...ports.controllers, ports.edge]) {
    const what = `port ${port} has a certificate for ${name}`
    await until(what, () => isTrusted(port, name), SLOW_MS, COMMAND_EVERY_MS)
  }
}

async function logIn(): Promise<void> {
  const password = join(folder, 'password')
  writeFileSync(password, admin.password, { mode: 0o600 })
  const urls = ports.controllers.map((port) => `https://127.0.0.1:${port}`)
  const words = ['--user', admin.username, '--password-file', password, '--ca', admin.ca]
  await onHost('login', ...urls, ...words)
}

async function enroll(name: string): Promise<string> {
  const file = join(folder, `${name}.json`)
  const token = join(folder, `${name}.jwt`)
  const fields = [`name=${name}`, 'type=Device', 'isAdmin=false', `roleAttributes=${name}`]
  await onHost('create', 'identity', ...fields, 'enrollment={"ott":true}')
  const text = await onHost('get', 'identity', name, '-o', 'json')
  writeFileSync(token, /"jwt": *"([^"]+)"/.exec(text)?.[1] ?? '', { mode: 0o600 })
  await onHost('identity', 'enroll', token, '--out', file)
  return file
}

async function createService(): Promise<void> {
  const { port } = page.address() as AddressInfo
  const types = await onHost('list', 'config-types', '-o', 'json')
  const rows = JSON.parse(types) as readonly { readonly id: string; readonly name: string }[]
  const type = rows.find(({ name }) => name === 'host.v1')?.id ?? ''
  const data = JSON.stringify({ protocol: 'tcp', address: '127.0.0.1', port })
  await onHost('create', 'config', 'name=web', `configTypeId=${type}`, `data=${data}`)
  const config = await onHost('get', 'config', 'web', '-o', 'json')
  const { id } = JSON.parse(config) as { readonly id: string }
  await onHost('create', 'service', 'name=web', 'encryptionRequired=true', `configs=${id}`)
  const any = 'semantic=AnyOf'
  const policies = [
    ['service-policy', 'name=bind', 'type=Bind', 'serviceRoles=@web', 'identityRoles=#server'],
    ['service-policy', 'name=dial', 'type=Dial', 'serviceRoles=@web', 'identityRoles=#laptop'],
    ['edge-router-policy', 'name=all', 'identityRoles=#all', 'edgeRouterRoles=#public'],
    ['service-edge-router-policy', 'name=all', 'serviceRoles=#all', 'edgeRouterRoles=#public'],
  ]
  for (const policy of policies) await onHost('create', ...policy, any)
}

function tunnel(...words: readonly string[]): void {
  children.push(spawn(flotilla, ['tunnel', 'run', ...words], { env, stdio: 'ignore' }))
}

describe.skipIf(missing !== null)(`docker compose up ${missing ?? ''}`, () => {
  let offered: string

  const untilDialed = (): Promise<unknown> =>
    until(
      'the service answers through the router',
      async () => {
        const answer = await fetch(offered).catch(() => null)
        return (await answer?.text()) === 'through the router'
      },
      SLOW_MS,
      COMMAND_EVERY_MS,
    )

  test('lets the host log in with a trusted certificate, and reach a service through the router', async () => {
    await compose('up', '--detach')
    await until(
      'there is a password',
      () =>
        readAdmin().then(
          () => true,
          () => false,
        ),
      SLOW_MS,
    )
    await untilThreeVoters()
    await untilTrusted('127.0.0.1')
    await logIn()
    await createService()
    const proxyPort = await freePort()
    tunnel('--identity', await enroll('server'))
    tunnel('--identity', await enroll('laptop'), '--proxy', `web:${proxyPort}`)
    offered = `http://127.0.0.1:${proxyPort}/`
    await untilDialed()
  })

  test('continues with the same volumes, and the tunnels on the host reconnect', async () => {
    await compose('down')
    await compose('up', '--detach')
    await untilThreeVoters()
    await untilDialed()
  })

  test('lets an operator replace a controller that lost its volume', async () => {
    await loseVolume('ctrl2')
    const confirmed = ['--confirm', 'remove ctrl2 and tolerate 0 failures']
    await inside(
      'ctrl1',
      'flotilla',
      'cluster',
      'remove',
      'ctrl2',
      '--config',
      CONFIG,
      ...confirmed,
    )
    await compose('up', '--detach', 'tickets', 'ctrl2')
    await untilThreeVoters()
    await untilTrusted('127.0.0.1')
    await untilDialed()
  })

  test('lets an operator enroll a router again that lost its volume', async () => {
    await loseVolume('router1')
    await onHost('delete', 'edge-router', 'router1', '--yes')
    await compose('up', '--detach', 'router-token', 'router1')
    await untilDialed()
  })

  test('presents certificates with the new host name after a restart with a changed FLOTILLA_HOST', async () => {
    env = { ...env, FLOTILLA_HOST: 'net.example.org' }
    await compose('down')
    await compose('up', '--detach')
    await untilThreeVoters()
    await untilTrusted('net.example.org')
  })
})

describe.skipIf(missingFormer !== null)(
  `docker compose up with volumes of ${FORMER_IMAGE} ${missingFormer ?? ''}`,
  () => {
    test('continues the network of the former release, with its administrator and its router', async () => {
      await compose('down', '--volumes')
      env = { ...env, FLOTILLA_HOST: '127.0.0.1' }
      const former = join(folder, 'former.yml')
      const text = readFileSync(FORMER_COMPOSE_FILE, 'utf8')
      writeFileSync(
        former,
        text.replace(
          /127\.0\.0\.1:128(\d):/g,
          (_, at) => `127.0.0.1:${ports.controllers[Number(at)]}:`,
        ),
      )
      await composeWith(former, 'up', '--detach')
      await untilThreeVoters()
      await compose('up', '--detach')
      await untilThreeVoters()
      await readAdmin()
      await untilTrusted('127.0.0.1')
      const words = ['cluster', 'upgrade', 'status', '--config', CONFIG, '--wait', '2m']
      const status = await inside('ctrl1', 'flotilla', ...words)
      expect(status).toContain(`the upgrade is complete; every member runs v${version}`)
      await logIn()
      await until(
        'the router is online',
        async () => {
          const rows = await onHost('list', 'edge-routers', '-o', 'json')
          const routers = JSON.parse(rows) as readonly {
            readonly name: string
            readonly isOnline: boolean
          }[]
          return routers.some(({ name, isOnline }) => name === 'router1' && isOnline)
        },
        SLOW_MS,
        COMMAND_EVERY_MS,
      )
    })
  },
)
