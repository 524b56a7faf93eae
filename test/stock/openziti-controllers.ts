import { type ChildProcess, execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { Client, until } from '../process/support/client.ts'
import { freePortBlock } from '../support/ports.ts'
import { inBackground } from './echo.ts'
import { ManagementApi } from './management-api.ts'

export interface OpenZitiControllersOptions {
  readonly binary: string
  readonly folder: string
  /** A single controller has a separate database (`db`); three controllers are a cluster. */
  readonly count: 1 | 3
  /**
   * Number of ports of each controller: one for both routers and clients, or one for each; the
   * second port then has a separate key.
   */
  readonly ports: 1 | 2
}

export const admin = { username: 'admin', password: 'cut-Over-7' }
const trustDomain = 'acme.test'
/** Controllers that are later added to a cluster use the next ports. */
const CONTROLLERS_MAX = 3
const ROUTER_PORT_OFFSET = 100
const execute = promisify(execFile)

/**
 * Unmodified OpenZiti controllers in separate processes, with the PKI that OpenZiti's own commands
 * create.
 */
export class OpenZitiControllers {
  readonly options: OpenZitiControllersOptions
  readonly #firstPort: number
  #children: ChildProcess[] = []

  private constructor(options: OpenZitiControllersOptions, firstPort: number) {
    this.options = options
    this.#firstPort = firstPort
  }

  /**
   * Creates the PKI, the configurations and the database or cluster. The controllers are running
   * afterwards.
   */
  static async create(options: OpenZitiControllersOptions): Promise<OpenZitiControllers> {
    const made = new OpenZitiControllers(options, await freePortBlock(CONTROLLERS_MAX))
    await made.#createAuthority()
    for (const k of made.numbers) await made.#createController(k)
    if (options.count === 1) {
      const { username, password } = admin
      await made.#ziti('controller', 'edge', 'init', made.config(1), '-u', username, '-p', password)
    }
    await made.start()
    if (options.count > 1) await made.#formCluster()
    return made
  }

  get numbers(): readonly number[] {
    return Array.from({ length: this.options.count }, (_, at) => at + 1)
  }

  id(k: number): string {
    return `ctrl${k}`
  }

  webPort(k: number): number {
    return this.#firstPort + k - 1
  }

  routerPort(k: number): number {
    return this.webPort(k) + (this.options.ports === 1 ? 0 : ROUTER_PORT_OFFSET)
  }

  folder(k: number): string {
    return join(this.options.folder, this.id(k))
  }

  config(k: number): string {
    return join(this.folder(k), 'ctrl.yml')
  }

  /** SHA-256 of the database of each controller. */
  databaseDigests(): readonly string[] {
    return this.numbers.map((k) => fileDigest(this.#database(k)))
  }

  get ca(): string {
    return join(this.#pki, 'root', 'certs', 'root.cert')
  }

  async api(k: number): Promise<ManagementApi> {
    return await ManagementApi.logIn(this.#client(k), admin)
  }

  /** Starts all controllers, and waits until each answers. */
  async start(): Promise<void> {
    this.#children = this.numbers.map((k) =>
      inBackground(
        this.options.binary,
        ['controller', 'run', this.config(k)],
        join(this.folder(k), `controller.log`),
      ),
    )
    for (const k of this.numbers) {
      await until(`OpenZiti's ${this.id(k)} answers`, async () => {
        const path = '/edge/management/v1/version'
        const { status } = await this.#client(k).request('GET', path, { isHeld: false })
        return status === 200
      })
    }
  }

  /** Stops all controllers as a service manager does, and waits until they exit. */
  async stop(): Promise<void> {
    await Promise.all(this.#children.map((child) => ended(child, 'SIGTERM')))
    this.#children = []
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#children.map((child) => ended(child, 'SIGKILL')))
  }

  #client(k: number): Client {
    return new Client(`https://localhost:${this.webPort(k)}`, this.ca)
  }

  async #ziti(...args: readonly string[]): Promise<void> {
    await execute(this.options.binary, args, { cwd: this.options.folder })
  }

  #database(k: number): string {
    return join(this.folder(k), this.options.count === 1 ? 'ctrl.db' : 'raft/ctrl-ha.db')
  }

  get #pki(): string {
    return join(this.options.folder, 'pki')
  }

  async #createAuthority(): Promise<void> {
    const names = ['--ca-file', 'root', '--ca-name', 'root']
    const domain = this.options.count === 1 ? [] : ['--trust-domain', trustDomain]
    await this.#createPki('ca', ...names, ...domain)
  }

  async #createPki(kind: string, ...args: readonly string[]): Promise<void> {
    await this.#ziti('pki', 'create', kind, '--pki-root', this.#pki, ...args)
  }

  /**
   * Runs the commands of OpenZiti's quickstart. Each controller has its own intermediate authority.
   */
  async #createController(k: number): Promise<void> {
    const id = this.id(k)
    const signer = `signer-${id}`
    const names = ['--intermediate-name', signer, '--intermediate-file', signer]
    await this.#createPki('intermediate', '--ca-name', 'root', ...names, '--max-path-len', '1')
    const spiffe = this.options.count === 1 ? [] : ['--spiffe-id', `controller/${id}`]
    const common = ['--ca-name', signer, ...spiffe]
    const hosts = ['--dns', 'localhost', '--ip', '127.0.0.1']
    const server = ['--server-name', id, '--server-file', 'server']
    await this.#createPki('server', ...common, ...server, ...hosts)
    const client = ['--client-name', id, '--client-file', 'client', '--key-file', 'server']
    await this.#createPki('client', ...common, ...client)
    if (this.options.ports === 2) {
      const web = ['--server-name', `${id} web`, '--server-file', 'web']
      await this.#createPki('server', ...common, ...web, ...hosts)
    }
    mkdirSync(this.folder(k), { recursive: true })
    writeFileSync(this.config(k), this.#configText(k))
  }

  #configText(k: number): string {
    const signer = `signer-${this.id(k)}`
    const file = (kind: string, name: string): string => join(this.#pki, signer, kind, name)
    const identityOf = (server: string): string => `
    cert: ${file('certs', 'client.chain.pem')}
    key: ${file('keys', 'server.key')}
    server_cert: ${file('certs', `${server}.chain.pem`)}
    server_key: ${file('keys', `${server}.key`)}
    ca: ${this.ca}`
    const web = `localhost:${this.webPort(k)}`
    const isSingle = this.options.count === 1
    return `v: 3
${isSingle ? `db: ${this.#database(k)}` : `cluster: {dataDir: ${join(this.folder(k), 'raft')}}`}
identity:${identityOf('server')}
ctrl:
  options: {advertiseAddress: "tls:localhost:${this.routerPort(k)}"}
  listener: tls:127.0.0.1:${this.routerPort(k)}
healthChecks: {boltCheck: {interval: 30s, timeout: 20s, initialDelay: 30s}}
edge:
  api: {sessionTimeout: 30m, address: "${web}"}
  enrollment:
    signingCert:
      cert: ${file('certs', `${signer}.cert`)}
      key: ${file('keys', `${signer}.key`)}
    edgeIdentity: {duration: 180m}
    edgeRouter: {duration: 180m}
web:
  - name: client-management
    bindPoints: [{interface: "127.0.0.1:${this.webPort(k)}", address: "${web}"}]
    identity:${identityOf(this.options.ports === 1 ? 'server' : 'web').replaceAll('\n', '\n    ')}
    options: {idleTimeout: 5000ms, readTimeout: 5000ms, writeTimeout: 100000ms, minTLSVersion: TLS1.2, maxTLSVersion: TLS1.3}
    apis:
      - binding: edge-management
      - binding: edge-client
      - binding: fabric
      - binding: edge-oidc
`
  }

  async #formCluster(): Promise<void> {
    const agent = async (k: number, ...args: readonly string[]): Promise<void> => {
      const pid = `${this.#children[k - 1]?.pid ?? 0}`
      await this.#ziti('agent', 'cluster', ...args, '--pid', pid, '--timeout', '30s')
    }
    const { username, password } = admin
    await retried(() => agent(1, 'init', username, password, username))
    for (const k of this.numbers.slice(1)) {
      await retried(() => agent(k, 'add', `tls:localhost:${this.routerPort(1)}`, '--voter=true'))
    }
    for (const k of this.numbers) await this.api(k)
  }
}

async function retried(run: () => Promise<void>): Promise<void> {
  await until('a command of the agent', async () => {
    await run()
    return true
  })
}

/** SHA-256, hex. */
export function fileDigest(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex')
}

/** Waits until a process has exited. */
export async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = new Promise((done) => child.once('exit', done))
  child.kill(signal)
  await exited
}
