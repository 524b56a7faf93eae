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
}

/** A router of ours in a process of its own. */
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
    const { folder, endpoint, linkPort } = this.options
    await mkdir(folder, { recursive: true })
    const at = `127.0.0.1:${linkPort}`
    writeFileSync(
      this.config,
      `v: 3
identity: {cert: r.cert, server_cert: r.server.cert, key: r.key, ca: r.ca}
ctrl: {endpoint: "${endpoint}"}
csr: {sans: {dns: [localhost], ip: [127.0.0.1]}}
edge: {}
link: {listeners: [{binding: transport, bind: "tls:${at}", advertise: "tls:${at}"}], dialers: [{binding: transport}]}
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

  start(): void {
    this.#child = spawn(flotilla, ['router', 'run', this.config], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const log = createWriteStream(this.log, { flags: 'a' })
    this.#child.stdout?.pipe(log)
    this.#child.stderr?.pipe(log)
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
