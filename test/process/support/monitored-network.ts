import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  closeSync,
  cpSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { dirname, join, resolve } from 'node:path'

import { OurRouter } from '../../stock/our-router.ts'
import { freePort } from '../../support/ports.ts'
import type { Client } from './client.ts'
import { flotilla } from './cluster.ts'
import { Fleet } from './fleet.ts'
import { Prometheus } from './prometheus.ts'

/** The size of the disk of controller 3. A test may fill it. */
const DISK_MIB = 900

/** An echo server, which a test can close and open again at the same port. */
class EchoTarget {
  readonly #sockets = new Set<Socket>()
  #server: Server | null = null
  port = 0

  async open(): Promise<void> {
    const server = createServer((socket) => {
      this.#sockets.add(socket)
      socket.on('error', () => undefined)
      socket.pipe(socket)
    })
    server.listen(this.port, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    this.port = typeof address === 'object' && address !== null ? address.port : 0
    this.#server = server
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#server?.close()
  }
}

/** A tunnel that serves metrics, in a separate process. */
class MonitoredTunnel {
  readonly file: string
  readonly metricsPort: number
  readonly #options: readonly string[]
  #child: ChildProcess | null = null

  constructor(file: string, metricsPort: number, options: readonly string[]) {
    this.file = file
    this.metricsPort = metricsPort
    this.#options = options
  }

  start(): void {
    const log = openSync(`${this.file}.log`, 'a')
    const metrics = ['--metrics', String(this.metricsPort)]
    const words = ['tunnel', 'run', '--identity', this.file, ...metrics, ...this.#options]
    this.#child = spawn(flotilla, words, { stdio: ['ignore', log, log] })
    closeSync(log)
  }

  async stop(): Promise<void> {
    const child = this.#child
    this.#child = null
    if (child === null || child.exitCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    await ended
  }
}

/**
 * Three controllers, a router, a tunnel that hosts the service `echo`, another tunnel through which
 * clients reach it, and a Prometheus that scrapes all of them. The certificates of the router and
 * the identities expire in five days.
 */
export class MonitoredNetwork {
  readonly fleet: Fleet
  readonly target = new EchoTarget()
  /** ID of a service that no tunnel hosts. */
  idleServiceId = ''
  /** Whether controller 3 has a separate small disk. */
  hasOwnDisk = false
  readonly #clients = new Map<number, Client>()
  #router: OurRouter | null = null
  #tunnels: { readonly host: MonitoredTunnel; readonly user: MonitoredTunnel } | null = null
  #prometheus: Prometheus | null = null
  #proxyPort = 0

  private constructor(fleet: Fleet) {
    this.fleet = fleet
  }

  static async start(): Promise<MonitoredNetwork> {
    const env = {
      FLOTILLA_ENROLLMENT_CERTIFICATE_DAYS: '5',
      // These settings let the tests pass on a slow machine.
      FLOTILLA_API_REQUEST_TIMEOUT_MS: '120000',
      // With this rate, a controller stays in quarantine for some seconds, so that a scrape
      // observes it.
      FLOTILLA_CLUSTER_SNAPSHOT_BYTES_PER_SECOND: '1048576',
    }
    const network = new MonitoredNetwork(await Fleet.create(3, { env }))
    try {
      await network.#start()
      return network
    } catch (error) {
      await network[Symbol.asyncDispose]()
      throw error
    }
  }

  async #start(): Promise<void> {
    const { fleet } = this
    await fleet.init()
    this.#mountDisk()
    for (const k of [2, 3]) await fleet.join(k, 1)
    await this.target.open()
    await this.#createService()
    const metricsPort = await this.#addRouter()
    const host = await this.#addTunnel('host', 'Bind', [])
    this.#proxyPort = await freePort()
    const user = await this.#addTunnel('user', 'Dial', ['--proxy', `echo:${this.#proxyPort}`])
    this.#tunnels = { host, user }
    const cert = join(fleet.dir, 'prometheus.pem')
    const issue = [
      'pki',
      'issue',
      '--config',
      fleet.config(1),
      '--name',
      'prometheus',
      '--out',
      cert,
    ]
    const issued = await fleet.cli(issue)
    if (issued.code !== 0) throw new Error(issued.stderr)
    this.#prometheus = await Prometheus.start({
      folder: join(fleet.dir, 'prometheus'),
      targets: {
        flotilla: [1, 2, 3].map((k) => this.instance(k)),
        'flotilla-routers': [`127.0.0.1:${metricsPort}`],
        'flotilla-tunnels': [host, user].map((tunnel) => `127.0.0.1:${tunnel.metricsPort}`),
      },
      certificate: { ca: join(fleet.folder(1), 'ca.pem'), cert, key: `${cert}.key` },
    })
  }

  get prometheus(): Prometheus {
    if (this.#prometheus === null) throw new Error('the network is not started')
    return this.#prometheus
  }

  get router(): OurRouter {
    if (this.#router === null) throw new Error('the network is not started')
    return this.#router
  }

  get tunnels(): { readonly host: MonitoredTunnel; readonly user: MonitoredTunnel } {
    if (this.#tunnels === null) throw new Error('the network is not started')
    return this.#tunnels
  }

  /** The value of the label `instance` for controller k. */
  instance(k: number): string {
    return new URL(this.fleet.url(k)).host
  }

  async client(k: number): Promise<Client> {
    const known = this.#clients.get(k) ?? (await this.fleet.loggedIn(k))
    this.#clients.set(k, known)
    return known
  }

  /** Stops controller k, and starts it with additional lines in its configuration. */
  async restart(k: number, lines = ''): Promise<void> {
    await this.fleet.stop(k)
    appendFileSync(this.fleet.config(k), lines)
    await this.fleet.start(k)
  }

  /** @returns whether data sent through the service came back. */
  async dials(): Promise<boolean> {
    const socket = connect({ port: this.#proxyPort, host: '127.0.0.1' })
    socket.on('error', () => undefined)
    socket.write('a word')
    // A socket that the tunnel resets emits an error.
    const ended = once(socket, 'close').catch(() => [])
    const read = await Promise.race([once(socket, 'data').catch(() => []), ended])
    socket.destroy()
    return Buffer.isBuffer(read[0])
  }

  /**
   * Enrolls a new identity that may dial or bind every service, and writes it to the file; replaces
   * an earlier file.
   */
  async enroll(name: string, role: 'Dial' | 'Bind', file: string): Promise<void> {
    const { id } = await this.post('identities', {
      name,
      type: 'Default',
      isAdmin: false,
      roleAttributes: [role],
      enrollment: { ott: true },
    })
    const client = await this.client(1)
    const shown = await client.request('GET', `/edge/management/v1/identities/${id}`)
    const { enrollment } = shown.body.data as { enrollment: { ott: { jwt: string } } }
    writeFileSync(`${file}.jwt`, enrollment.ott.jwt)
    const words = ['identity', 'enroll', `${file}.jwt`, '--out', file, '--force']
    const { code, stderr } = await this.fleet.cli(words)
    if (code !== 0) throw new Error(stderr)
  }

  async post(path: string, body: object): Promise<{ readonly id: string }> {
    const client = await this.client(1)
    const answer = await client.request('POST', `/edge/management/v1/${path}`, { body })
    if (answer.status !== 201) throw new Error(`${path}: ${answer.text}`)
    return answer.body.data as { readonly id: string }
  }

  /**
   * Copies the program and gives the copy another version number. @returns the launcher of the
   * copy.
   */
  otherVersion(version: string): string {
    const from = dirname(dirname(resolve(flotilla)))
    const to = join(this.fleet.dir, 'other-version')
    const leftOut = new Set(
      ['.git', '.test', 'node_modules', 'docs', 'test'].map((name) => join(from, name)),
    )
    cpSync(from, to, { recursive: true, filter: (path) => !leftOut.has(path) })
    const modules = resolve(import.meta.dirname, '../../../node_modules')
    symlinkSync(modules, join(to, 'node_modules'))
    const manifest = join(to, 'package.json')
    const { ...fields } = JSON.parse(readFileSync(manifest, 'utf8')) as object
    writeFileSync(manifest, JSON.stringify({ ...fields, version }))
    return join(to, 'bin/flotilla')
  }

  /** Changes the size of the disk of controller 3. */
  resizeDisk(mib: number): void {
    execFileSync('mount', ['-o', `remount,size=${mib}m`, this.fleet.folder(3)])
  }

  #mountDisk(): void {
    const folder = this.fleet.folder(3)
    mkdirSync(folder)
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m`, 'flotilla', folder], {
        stdio: 'ignore',
      })
      this.hasOwnDisk = true
    } catch {
      // Only root may mount; without it, the tests that need a small disk are skipped.
      rmSync(folder, { recursive: true })
    }
  }

  async #createService(): Promise<void> {
    const client = await this.client(1)
    const filter = encodeURIComponent('name="host.v1"')
    const types = await client.request('GET', `/edge/management/v1/config-types?filter=${filter}`)
    const [type] = types.body.data as { id: string }[]
    const config = await this.post('configs', {
      name: 'echo',
      configTypeId: type?.id,
      data: { protocol: 'tcp', address: '127.0.0.1', port: this.target.port },
    })
    await this.post('services', { name: 'echo', encryptionRequired: true, configs: [config.id] })
    const idle = await this.post('services', { name: 'idle', encryptionRequired: true })
    this.idleServiceId = idle.id
    for (const type of ['Dial', 'Bind']) {
      const roles = { identityRoles: [`#${type}`], serviceRoles: ['#all'] }
      await this.post('service-policies', { name: type, type, semantic: 'AnyOf', ...roles })
    }
    const ofRouters = { semantic: 'AnyOf', edgeRouterRoles: ['#all'] }
    await this.post('edge-router-policies', { name: 'all', ...ofRouters, identityRoles: ['#all'] })
    await this.post('service-edge-router-policies', {
      name: 'all',
      ...ofRouters,
      serviceRoles: ['#all'],
    })
  }

  /** @returns the metrics port of the router. */
  async #addRouter(): Promise<number> {
    const { id } = await this.post('edge-routers', { name: 'gate' })
    const client = await this.client(1)
    const shown = await client.request('GET', `/edge/management/v1/edge-routers/${id}`)
    const { enrollmentJwt } = shown.body.data as { readonly enrollmentJwt: string }
    const metricsPort = await freePort()
    const at = `127.0.0.1:${metricsPort}`
    const router = new OurRouter({
      folder: join(this.fleet.dir, 'gate'),
      endpoint: `tls:127.0.0.1:${this.fleet.routerPort(1)}`,
      linkPort: await freePort(),
      edgePort: await freePort(),
      sections: [
        `web: [{name: m, bindPoints: [{interface: "${at}", address: "${at}"}], apis: [{binding: metrics}]}]`,
      ],
    })
    await router.enroll(enrollmentJwt)
    router.start()
    this.#router = router
    return metricsPort
  }

  async #addTunnel(
    name: string,
    role: 'Dial' | 'Bind',
    options: readonly string[],
  ): Promise<MonitoredTunnel> {
    const file = join(this.fleet.dir, `${name}.json`)
    await this.enroll(name, role, file)
    const tunnel = new MonitoredTunnel(file, await freePort(), options)
    tunnel.start()
    return tunnel
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.target.close()
    await this.#prometheus?.[Symbol.asyncDispose]()
    await Promise.all([this.#tunnels?.host.stop(), this.#tunnels?.user.stop()])
    await this.#router?.kill()
    for (const k of [1, 2, 3]) await this.fleet.stop(k, 'SIGKILL')
    if (this.hasOwnDisk) execFileSync('umount', [this.fleet.folder(3)])
    await this.fleet[Symbol.asyncDispose]()
  }
}
