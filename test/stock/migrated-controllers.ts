import { type ChildProcess, execFile } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { clusterOperationRequest } from '../../src/cli/client/connection.ts'
import { sendToAdminSocket } from '../../src/cli/client/admin-socket.ts'
import type { ClusterStatus } from '../../src/api/cluster/cluster-status.ts'
import { Client, until } from '../process/support/client.ts'
import { flotilla } from '../process/support/cluster.ts'
import { inBackground } from './echo.ts'
import { ManagementApi } from './management-api.ts'
import { admin, ended, type OpenZitiControllers } from './openziti-controllers.ts'

const NODES = 3
const MESH_PORT_OFFSET = 200
const execute = promisify(execFile)

/** Three of our controllers that replace OpenZiti's controllers, at the same addresses. */
export class MigratedControllers {
  readonly #old: OpenZitiControllers
  readonly folder: string
  readonly #children = new Map<number, ChildProcess>()

  constructor(old: OpenZitiControllers, folder: string) {
    this.#old = old
    this.folder = folder
  }

  readonly numbers: readonly number[] = Array.from({ length: NODES }, (_, at) => at + 1)

  /** @returns the report of the migration. */
  async migrate(): Promise<string> {
    mkdirSync(this.folder, { recursive: true })
    const configs = this.#old.numbers.map((k) => this.#old.config(k))
    await this.#run('migrate', 'check', ...configs)
    const written = ['--out', this.#backup, '--configs', join(this.folder, 'configs')]
    return await this.#run('migrate', ...configs, ...written, '--plaintext')
  }

  /** Restores the backup at the first controller, and starts it. */
  async startFirst(): Promise<void> {
    await this.#run('cluster', 'snapshot', 'restore', this.#backup, this.config(1))
    this.start(1)
    await until('the first controller answers', () => this.isReady(1), undefined, 20)
  }

  /**
   * Makes controller k join: with the configuration that the migration wrote for it, or as a new
   * controller.
   */
  async join(k: number): Promise<void> {
    const ticket = join(this.folder, `ticket-${k}`)
    await this.#run('cluster', 'invite', '--config', this.config(1), '--out', ticket)
    const isOld = this.#old.numbers.includes(k)
    if (!isOld) mkdirSync(join(this.folder, 'configs', this.id(k)), { recursive: true })
    const words = ['cluster', 'join', this.config(k), '--ticket-file', ticket, '--no-run']
    await this.#run(...words, ...(isOld ? [] : this.#newAddresses(k)))
    this.start(k)
    await until(`${this.id(k)} answers`, () => this.isReady(k), undefined, 20)
  }

  start(k: number): void {
    const log = join(this.folder, 'configs', this.id(k), 'controller.log')
    this.#children.set(k, inBackground(flotilla, ['controller', 'run', this.config(k)], log))
  }

  async kill(k: number, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#children.get(k)
    this.#children.delete(k)
    if (child !== undefined) await ended(child, signal)
  }

  async stop(): Promise<void> {
    await Promise.all(this.numbers.map((k) => this.kill(k, 'SIGTERM')))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.numbers.map((k) => this.kill(k)))
  }

  id(k: number): string {
    return this.#old.id(k)
  }

  config(k: number): string {
    return join(this.folder, 'configs', this.id(k), 'config.yml')
  }

  async api(k: number): Promise<ManagementApi> {
    return await ManagementApi.logIn(this.#client(k), admin)
  }

  async isReady(k: number): Promise<boolean> {
    if (!existsSync(join(this.folder, 'configs', this.id(1), 'ca.pem'))) return false
    const { status } = await this.#client(k).request('GET', '/edge/client/v1/version')
    return status === 200
  }

  /** Number of the leader, according to a running controller. */
  async leader(): Promise<number> {
    return await until('a leader', async () => {
      for (const k of this.#children.keys()) {
        const data = join(this.folder, 'configs', this.id(k), 'data')
        const status = (await sendToAdminSocket(data, clusterOperationRequest('status')).catch(
          () => null,
        )) as ClusterStatus | null
        const leader = status?.members.find(({ role }) => role === 'leader')
        const number = this.numbers.find((other) => this.id(other) === leader?.id)
        if (number !== undefined && this.#children.has(number)) return number
      }
      return null
    })
  }

  async transferLeadership(k: number): Promise<void> {
    const config = this.config(await this.leader())
    await this.#run('cluster', 'transfer-leadership', this.id(k), '--config', config)
    await until(`${this.id(k)} leads`, async () => (await this.leader()) === k)
  }

  get #backup(): string {
    return join(this.folder, 'net.backup')
  }

  #client(k: number): Client {
    const ca = join(this.folder, 'configs', this.id(1), 'ca.pem')
    return new Client(`https://localhost:${this.#old.webPort(k)}`, ca)
  }

  #newAddresses(k: number): readonly string[] {
    const at = (port: number): string => `127.0.0.1:${port}`
    const web = this.#old.webPort(k)
    const flags = {
      id: this.id(k),
      advertise: 'localhost',
      'bind-api': at(web),
      'bind-router': at(this.#old.routerPort(k)),
      'bind-cluster': at(web + MESH_PORT_OFFSET),
    }
    return Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value])
  }

  async #run(...words: readonly string[]): Promise<string> {
    return (await execute(flotilla, words)).stdout
  }
}
