import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls'

import { encodeFrame } from '../../../src/channel/frame.ts'
import { encodeText } from '../../../src/channel/headers.ts'
import { CONTROL_PROTOCOL } from '../../../src/channel/messages/control.ts'
import { EDGE_PROTOCOL } from '../../../src/channel/messages/edge.ts'
import { LINK_PROTOCOL } from '../../../src/channel/messages/links.ts'
import { OurRouter } from '../../stock/our-router.ts'
import { freePort } from '../../support/ports.ts'
import { until } from './client.ts'
import { Fleet } from './fleet.ts'

/**
 * Every listener that requests client certificates, and the listener of the routers' health checks.
 */
export const listenerNames = ['api', 'control', 'mesh', 'edge', 'link', 'health'] as const
export type ListenerName = (typeof listenerNames)[number]

/**
 * `single`: one certificate from an unknown authority. `large`: the same with its issuer
 * certificate of 38 KB. `enrolled`: the certificate of a router of the network, with the
 * intermediate certificate.
 */
export const chainNames = ['single', 'large', 'enrolled'] as const
export type ChainName = (typeof chainNames)[number]

interface ClientCertificate {
  readonly cert: Buffer
  readonly key: Buffer
}

const CONNECTIONS_AT_A_TIME = 16
/**
 * Spreads the connections over many source addresses, so that rate limits per source do not
 * determine the duration.
 */
const SOURCES = 250
const preload = resolve(import.meta.dirname, '../../support/forced-collection.ts')

/** One controller and one of our routers, whose memory a test measures while clients connect. */
export class ListenersUnderConnections {
  readonly #fleet: Fleet
  readonly #router: OurRouter
  readonly #ports: Readonly<Record<ListenerName, number>>
  readonly #chains: Readonly<Record<ChainName, ClientCertificate>>
  readonly #collections = new Map<number, number>()
  #opened = 0

  private constructor(
    fleet: Fleet,
    router: OurRouter,
    ports: Readonly<Record<ListenerName, number>>,
    chains: Readonly<Record<ChainName, ClientCertificate>>,
  ) {
    this.#fleet = fleet
    this.#router = router
    this.#ports = ports
    this.#chains = chains
  }

  static async start(): Promise<ListenersUnderConnections> {
    const fleet = await Fleet.create(1)
    Object.assign(fleet.env, {
      NODE_OPTIONS: `--expose-gc --import ${preload}`,
      FLOTILLA_COLLECTED: join(fleet.dir, 'collected'),
    })
    try {
      await fleet.init()
      const [linkPort, edgePort, healthPort] = [
        await freePort(),
        await freePort(),
        await freePort(),
      ]
      const router = new OurRouter({
        folder: join(fleet.dir, 'router'),
        endpoint: `tls:127.0.0.1:${fleet.port + 100}`,
        linkPort,
        edgePort,
        env: fleet.env,
        sections: [
          'healthChecks: {ctrlPingCheck: {interval: 1s, initialDelay: 0s}}',
          `web: [{name: health, bindPoints: [{interface: "127.0.0.1:${healthPort}", address: "127.0.0.1:${healthPort}"}], apis: [{binding: health-checks}]}]`,
        ],
      })
      await enroll(fleet, router)
      const ports = {
        api: fleet.port,
        control: fleet.port + 100,
        mesh: fleet.port + 200,
        edge: edgePort,
        link: linkPort,
        health: healthPort,
      }
      const chains = {
        ...foreignChains(join(fleet.dir, 'foreign')),
        enrolled: certificateIn(router.options.folder, 'r.cert', 'r.key'),
      }
      const started = new ListenersUnderConnections(fleet, router, ports, chains)
      await until('the router listens', () => started.#open('health', 'single'))
      return started
    } catch (error) {
      await fleet[Symbol.asyncDispose]()
      throw error
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#router.kill()
    await this.#fleet[Symbol.asyncDispose]()
  }

  /**
   * Opens and closes connections, with the certificate chains in turn.
   * @returns how many handshakes completed.
   */
  async connect(
    name: ListenerName,
    chains: readonly ChainName[],
    connections: number,
  ): Promise<number> {
    let begun = 0
    let completed = 0
    const work = async (): Promise<void> => {
      while (begun < connections) {
        const chain = chains[begun % chains.length] ?? 'single'
        begun += 1
        const isCompleted = await this.#open(name, chain)
        completed += isCompleted ? 1 : 0
      }
    }
    await Promise.all(Array.from({ length: CONNECTIONS_AT_A_TIME }, work))
    return completed
  }

  /**
   * Resident memory of the process that has this listener, after all its threads collected garbage.
   */
  async residentBytes(name: ListenerName): Promise<number> {
    const isController = name === 'api' || name === 'control' || name === 'mesh'
    const pid = isController ? this.#fleet.pid(1) : this.#router.pid
    const requests = (this.#collections.get(pid) ?? 0) + 1
    this.#collections.set(pid, requests)
    process.kill(pid, 'SIGPWR')
    const file = join(this.#fleet.dir, `collected.${pid}`)
    await until('all threads collected their garbage', () =>
      Promise.resolve(existsSync(file) && Number(readFileSync(file, 'utf8')) === requests),
    )
    const [, kib = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return Number(kib) * 1024
  }

  /** @returns whether the handshake completed. */
  #open(name: ListenerName, chain: ChainName): Promise<boolean> {
    this.#opened += 1
    const options: ConnectionOptions & { readonly localAddress: string } = {
      host: '127.0.0.1',
      port: this.#ports[name],
      localAddress: `127.0.0.${2 + (this.#opened % SOURCES)}`,
      rejectUnauthorized: false,
      ALPNProtocols: protocols[name],
      ...this.#chains[chain],
    }
    const socket = connect(options)
    return new Promise((done) => {
      let isCompleted = false
      socket.on('error', () => undefined)
      socket.on('close', () => done(isCompleted))
      socket.once('secureConnect', () => {
        isCompleted = true
        firstWords[name](socket)
      })
      socket.resume()
    })
  }
}

const protocols: Readonly<Record<ListenerName, [string]>> = {
  api: ['http/1.1'],
  control: [CONTROL_PROTOCOL],
  mesh: ['h2'],
  edge: [EDGE_PROTOCOL],
  link: [LINK_PROTOCOL],
  health: ['http/1.1'],
}

const hello = encodeFrame({
  contentType: 0,
  sequence: -1,
  headers: new Map([
    [4, encodeText('v2.0.0|abc|2026|linux|amd64')],
    [1002, encodeText('a session of nobody')],
  ]),
  body: encodeText('nobody'),
})

const request = (method: string, path: string, body = ''): string =>
  `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`

/** Bytes that make a listener check the certificate of an unknown client. */
const firstWords: Readonly<Record<ListenerName, (socket: TLSSocket) => void>> = {
  api: (socket) => socket.write(request('POST', '/edge/client/v1/authenticate?method=cert', '{}')),
  control: (socket) => socket.end(hello),
  mesh: (socket) => socket.end(),
  edge: (socket) => socket.end(hello),
  link: (socket) => socket.end(hello),
  health: (socket) => socket.write(request('GET', '/health-checks')),
}

async function enroll(fleet: Fleet, router: OurRouter): Promise<void> {
  const client = await fleet.loggedIn(1)
  const routers = '/edge/management/v1/edge-routers'
  const made = await client.request('POST', routers, { body: { name: 'router' } })
  const { id } = (made.body as { readonly data: { readonly id: string } }).data
  const shown = await client.request('GET', `${routers}/${id}`)
  const { enrollmentJwt } = (shown.body as { readonly data: { readonly enrollmentJwt: string } })
    .data
  await router.enroll(enrollmentJwt)
  router.start()
}

function certificateIn(folder: string, cert: string, key: string): ClientCertificate {
  return { cert: readFileSync(join(folder, cert)), key: readFileSync(join(folder, key)) }
}

/**
 * A certificate from an authority that no network knows, alone and with its issuer certificate,
 * which has 38 KB of names.
 */
function foreignChains(folder: string): Record<'single' | 'large', ClientCertificate> {
  mkdirSync(folder)
  const openssl = (...words: readonly string[]): void => {
    execFileSync('openssl', words, { cwd: folder, stdio: 'ignore' })
  }
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '9']
  const names = Array.from({ length: 190 }, (_, at) => `URI:https://${'a'.repeat(180)}/${at}`)
  writeFileSync(
    join(folder, 'ca.cnf'),
    `[req]\ndistinguished_name=d\nx509_extensions=e\nprompt=no\n[d]\nCN=large\n[e]\nbasicConstraints=critical,CA:TRUE\nsubjectAltName=${names.join()}\n`,
  )
  openssl('req', '-x509', ...newKey, '-config', 'ca.cnf', '-keyout', 'ca.key', '-out', 'ca.pem')
  openssl('req', ...newKey, '-subj', '/CN=nobody', '-keyout', 'leaf.key', '-out', 'leaf.csr')
  const signed = ['-in', 'leaf.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-days', '9']
  openssl('x509', '-req', ...signed, '-CAcreateserial', '-out', 'leaf.pem')
  const single = certificateIn(folder, 'leaf.pem', 'leaf.key')
  const issuer = readFileSync(join(folder, 'ca.pem'))
  return { single, large: { ...single, cert: Buffer.concat([single.cert, issuer]) } }
}
