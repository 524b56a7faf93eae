import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, writeFileSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { flotilla } from '../process/support/cluster.ts'

export interface OurRouterOptions {
  readonly folder: string
  /** `tls:host:port` of a controller. */
  readonly endpoint: string
  readonly linkPort: number
  /** The port that other routers receive; default: the port on which it listens. */
  readonly linkAdvertised?: number
  readonly linkGroups?: readonly string[]
  /** True: the router does not dial other routers. */
  readonly isDialedOnly?: boolean
  /** The port for clients; by default clients cannot connect. */
  readonly edgePort?: number
  /** The protocol of that port; default: tls. */
  readonly edgeProtocol?: 'tls' | 'wss'
  /** Environment of the router process; default: that of the test. */
  readonly env?: NodeJS.ProcessEnv
  /** Additional sections of the configuration, one line per item. */
  readonly sections?: readonly string[]
}

/** Our router in a separate process. */
export class OurRouter {
  readonly options: OurRouterOptions
  #child: ChildProcess | null = null

  constructor(options: OurRouterOptions) {
    this.options = options
  }

  get log(): string {
    return join(this.options.folder, 'router.log')
  }

  get config(): string {
    return join(this.options.folder, 'router.yml')
  }

  async enroll(jwt: string): Promise<void> {
    const { folder, endpoint, linkPort, edgePort, sections = [] } = this.options
    const { linkGroups = [], isDialedOnly = false, linkAdvertised = linkPort } = this.options
    const { edgeProtocol = 'tls' } = this.options
    const groups = linkGroups.length === 0 ? '' : `, groups: [${linkGroups.join()}]`
    await mkdir(folder, { recursive: true })
    const at = `127.0.0.1:${linkPort}`
    const clients = `127.0.0.1:${edgePort}`
    const listener = `listeners: [{binding: edge, bind: "${edgeProtocol}:${clients}", options: {advertise: "${clients}"}}]`
    writeFileSync(
      this.config,
      `v: 3
identity: {cert: r.cert, server_cert: r.server.cert, key: r.key, ca: r.ca}
ctrl: {endpoint: "${endpoint}"}
csr: {sans: {dns: [localhost], ip: [127.0.0.1]}}
edge: {}
link: {listeners: [{binding: transport, bind: "tls:${at}", advertise: "tls:127.0.0.1:${linkAdvertised}"${groups}}], dialers: [${isDialedOnly ? '' : `{binding: transport${groups}}`}]}
${edgePort === undefined ? '' : listener}
${sections.join('\n')}
`,
    )
    writeFileSync(join(folder, 'r.jwt'), jwt)
    await promisify(execFile)(flotilla, [
      'router',
      'enroll',
      this.config,
      '--jwt',
      join(folder, 'r.jwt'),
    ])
  }

  /** @param more additional options of `router run`. */
  start(...more: readonly string[]): void {
    this.#child = spawn(flotilla, ['router', 'run', this.config, ...more], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: this.options.env ?? process.env,
    })
    const log = createWriteStream(this.log, { flags: 'a' })
    this.#child.stdout?.pipe(log)
    this.#child.stderr?.pipe(log)
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  async kill(): Promise<void> {
    const child = this.#child
    this.#child = null
    if (child === null || child.exitCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }

  async logText(): Promise<string> {
    return await readFile(this.log, 'utf8')
  }
}
