import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, readFileSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'

import { until } from '../process/support/client.ts'

export interface StockRouterOptions {
  /** The OpenZiti program, which has the commands `router enroll` and `router run`. */
  readonly binary: string
  readonly folder: string
  readonly name: string
  /** `tls:host:port` of a controller. */
  readonly endpoint: string
  readonly linkPort: number
  readonly linkGroups?: readonly string[]
  readonly edgePort: number
  /** DNS names of the router's server certificate, in addition to localhost. */
  readonly dnsNames?: readonly string[]
  /** Mode of its `tunnel` listener; without it the router has no tunnel listener. */
  readonly tunnel?: TunnelOptions
  /** Additional listeners, and sections at the end, one line per item. */
  readonly listeners?: readonly string[]
  readonly sections?: readonly string[]
}

export interface TunnelOptions {
  readonly mode: 'host' | 'proxy'
  /** Services of the mode `proxy`: `service:port`. */
  readonly services?: readonly string[]
}

/** An unmodified OpenZiti router in a separate process. */
export class StockRouter {
  readonly options: StockRouterOptions
  #child: ChildProcess | null = null

  constructor(options: StockRouterOptions) {
    this.options = options
  }

  get config(): string {
    return join(this.options.folder, `${this.options.name}.yml`)
  }

  get log(): string {
    return join(this.options.folder, `${this.options.name}.log`)
  }

  /** Enrolls the router. @throws when a controller refuses it. */
  async enroll(jwt: string): Promise<void> {
    const { binary, folder, name } = this.options
    await mkdir(folder, { recursive: true })
    writeFileSync(this.config, this.#configText())
    const token = join(folder, `${name}.jwt`)
    writeFileSync(token, jwt)
    const child = spawn(binary, ['router', 'enroll', this.config, '--jwt', token], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let said = ''
    child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
    const [code] = (await once(child, 'exit')) as [number]
    if (code !== 0) throw new Error(`${name} was not enrolled: ${said.slice(-2000)}`)
  }

  start(...flags: readonly string[]): void {
    const { binary } = this.options
    this.#child = spawn(binary, ['router', 'run', this.config, ...flags], {
      stdio: ['ignore', 'pipe', 'pipe'],
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

  logText(): string {
    return readFileSync(this.log, 'utf8')
  }

  /** IDs of the controllers in the router's endpoints file. */
  endpoints(): string[] {
    try {
      const file = parse(readFileSync(join(this.options.folder, 'endpoints.yml'), 'utf8')) as {
        controllers?: { id: string }[]
      } | null
      return (file?.controllers ?? []).map(({ id }) => id).sort()
    } catch {
      return []
    }
  }

  #configText(): string {
    const { name, folder, endpoint, linkPort, edgePort, linkGroups = [] } = this.options
    const groups = linkGroups.length === 0 ? '' : `\n      groups: [${linkGroups.join()}]`
    const { listeners = [], sections = [], dnsNames = [] } = this.options
    const file = (ending: string): string => join(folder, `${name}.${ending}`)
    return `v: 3
identity:
  cert: ${file('cert')}
  server_cert: ${file('server.cert')}
  key: ${file('key')}
  ca: ${file('cas')}
ctrl:
  endpoint: ${endpoint}
link:
  dialers:
    - binding: transport${groups}
  listeners:
    - binding: transport
      bind: tls:127.0.0.1:${linkPort}
      advertise: tls:127.0.0.1:${linkPort}${groups}
listeners:
  - binding: edge
    address: tls:127.0.0.1:${edgePort}
    options:
      advertise: 127.0.0.1:${edgePort}
${tunnelText(this.options.tunnel)}${listeners.map((line) => `  - ${line}\n`).join('')}edge:
  csr:
    sans:
      dns: ${JSON.stringify(['localhost', ...dnsNames])}
      ip: ["127.0.0.1"]
forwarder: {}
${sections.join('\n')}
`
  }
}

function tunnelText(tunnel: TunnelOptions | undefined): string {
  if (tunnel === undefined) return ''
  const { mode, services = [] } = tunnel
  const served = services.map((service) => `        - ${service}\n`).join('')
  return `  - binding: tunnel
    options:
      mode: ${mode}
${services.length === 0 ? '' : `      services:\n${served}`}`
}

/**
 * Waits until `isSo` is true. @throws when it is still false after a time that is sufficient on a
 * busy machine.
 */
export async function seen(what: string, isSo: () => Promise<boolean> | boolean): Promise<void> {
  const beganMs = performance.now()
  await until(what, async () => ((await isSo()) ? true : null))
  console.log(`  seen after ${((performance.now() - beganMs) / 1000).toFixed(1)} s: ${what}`)
}
