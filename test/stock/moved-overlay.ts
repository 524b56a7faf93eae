import { type ChildProcess, execFile } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { parseCertificates } from '../../src/pki/certificate.ts'
import { pause, until } from '../process/support/client.ts'
import { freePort } from '../support/ports.ts'
import { inBackground } from './echo.ts'
import type { ManagementApi } from './management-api.ts'
import { ended, fileDigest, type OpenZitiControllers } from './openziti-controllers.ts'
import { StockRouter, type TunnelOptions } from './stock-router.ts'
import { startWebServer, Stream, Traffic } from './traffic.ts'

/** An unused enrollment token. */
export interface OpenToken {
  readonly name: string
  readonly kind: 'identity' | 'router'
  readonly jwt: string
}

/** An SDK requests a service session again only when the last request is older than this. */
const SESSION_REFRESH_MS = 30_000
const execute = promisify(execFile)

/**
 * Routers, clients and traffic of a network whose controllers change while they run: two edge
 * routers that carry services, a third that renews its certificate, a tunnel that hosts and one
 * that opens ports for services.
 */
export class MovedOverlay {
  readonly #binary: string
  readonly folder: string
  readonly routers: StockRouter[] = []
  readonly #children: ChildProcess[] = []
  readonly traffic: Traffic[] = []
  readonly #closed: (() => void)[] = []
  #stream: Stream | null = null
  #hostedAtMs = 0

  constructor(binary: string, folder: string) {
    this.#binary = binary
    this.folder = folder
  }

  /** Creates all routers, clients and services through the first controller, and starts them. */
  async start(controllers: OpenZitiControllers): Promise<void> {
    mkdirSync(this.folder, { recursive: true })
    const api = await controllers.api(1)
    const { server, port } = await startWebServer()
    this.#closed.push(() => server.close())
    await offerServices(api, port)
    const [web, books] = [await freePort(), await freePort()]
    const endpoint = `tls:localhost:${controllers.routerPort(1)}`
    const tunnels = {
      er1: { mode: 'host' },
      er2: { mode: 'proxy', services: [`books:${books}`] },
      er3: undefined,
    } as const
    for (const [name, tunnel] of Object.entries(tunnels)) {
      const id = await this.#addRouter(api, name, endpoint, tunnel)
      if (tunnel === undefined) continue
      const type = tunnel.mode === 'host' ? 'Bind' : 'Dial'
      await offerTo(api, { name: `${type} books`, type, identity: `@${id}`, service: '#books' })
    }
    const hostFile = await this.#addIdentity(api, 'host', ['hosts'])
    const userFile = await this.#addIdentity(api, 'user', ['users'])
    this.#runTunnel('host', ['tunnel', 'host', '-i', hostFile])
    this.#runTunnel('user', ['tunnel', 'proxy', `web:${web}`, '-i', userFile])
    this.traffic.push(new Traffic('tunnels', web), new Traffic('routers', books))
    for (const traffic of this.traffic) await traffic.back(0)
    this.#hostedAtMs = performance.now()
    this.#stream = new Stream(web)
  }

  get stream(): Stream {
    if (this.#stream === null) throw new Error('nothing was started')
    return this.#stream
  }

  /**
   * Waits until the host has been connected for as long as hosts of an established network: a host
   * that connected recently keeps a service session that has ended.
   */
  async settle(): Promise<void> {
    const ageMs = performance.now() - this.#hostedAtMs
    await pause(Math.max(0, SESSION_REFRESH_MS - ageMs))
  }

  /**
   * For each member, the token of an identity that the member created, and the token of a router as
   * the member reports it: the members of a cluster have different tokens for one router.
   */
  async openTokens(controllers: OpenZitiControllers): Promise<OpenToken[]> {
    const tokens: OpenToken[] = []
    for (const k of controllers.numbers) {
      const api = await controllers.api(k)
      const identity = `late${k}`
      const id = await createIdentity(api, identity, [])
      tokens.push({ name: identity, kind: 'identity', jwt: await identityToken(api, id) })
      const router = `late-router${k}`
      const routerId = await api.post('edge-routers', { name: router, roleAttributes: ['late'] })
      const [from = k] = controllers.numbers.filter((other) => other !== k)
      const jwt = await routerToken(await controllers.api(from), routerId)
      tokens.push({ name: router, kind: 'router', jwt })
    }
    return tokens
  }

  /** Uses a token with OpenZiti's own commands. */
  async useToken({ name, kind, jwt }: OpenToken, endpoint: string): Promise<void> {
    if (kind === 'identity') {
      await this.#enroll(name, jwt)
      return
    }
    const folder = join(this.folder, name)
    const ports = { linkPort: await freePort(), edgePort: await freePort() }
    await new StockRouter({ binary: this.#binary, folder, name, endpoint, ...ports }).enroll(jwt)
  }

  router(name: string): StockRouter {
    const found = this.routers.find(({ options }) => options.name === name)
    if (found === undefined) throw new Error(`no router ${name}`)
    return found
  }

  /** SHA-256 of each certificate, key and identity file, by name. */
  fileDigests(): Readonly<Record<string, string>> {
    const names = readdirSync(this.folder, { recursive: true, encoding: 'utf8' }).sort()
    const kept = names.filter((name) => /^(er\d\/.*\.(cert|key|cas)|(host|user)\.json)$/.test(name))
    return Object.fromEntries(kept.map((name) => [name, fileDigest(join(this.folder, name))]))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const traffic of this.traffic) traffic.end()
    for (const close of this.#closed) close()
    await Promise.all(this.#children.map((child) => ended(child, 'SIGKILL')))
    await Promise.all(this.routers.map((router) => router.kill()))
  }

  async #addRouter(
    api: ManagementApi,
    name: string,
    endpoint: string,
    tunnel: TunnelOptions | undefined,
  ): Promise<string> {
    const isTunnelerEnabled = tunnel !== undefined
    // OpenZiti 1.6 tunnels may hang when a router that they use restarts, as the third one does.
    const roleAttributes = isTunnelerEnabled ? ['public', name] : [name]
    const id = await api.post('edge-routers', { name, isTunnelerEnabled, roleAttributes })
    const router = new StockRouter({
      binary: this.#binary,
      folder: join(this.folder, name),
      name,
      endpoint,
      linkPort: await freePort(),
      edgePort: await freePort(),
      dnsNames: [`${name}.acme.test`, `*.${name}.acme.test`],
      ...(tunnel === undefined ? {} : { tunnel }),
    })
    await router.enroll(await routerToken(api, id))
    router.start()
    this.routers.push(router)
    return id
  }

  /** @returns the path of the identity file. */
  async #addIdentity(
    api: ManagementApi,
    name: string,
    roleAttributes: readonly string[],
  ): Promise<string> {
    const id = await createIdentity(api, name, roleAttributes)
    return await this.#enroll(name, await identityToken(api, id))
  }

  async #enroll(name: string, jwt: string): Promise<string> {
    const file = join(this.folder, `${name}.json`)
    const token = join(this.folder, `${name}.jwt`)
    writeFileSync(token, jwt)
    await execute(this.#binary, ['edge', 'enroll', token, '-o', file])
    return file
  }

  #runTunnel(name: string, args: readonly string[]): void {
    this.#children.push(inBackground(this.#binary, args, join(this.folder, `${name}.log`)))
  }
}

/** DNS names and IP addresses of a router's server certificate, sorted. */
export function serverNames(router: StockRouter): readonly string[] {
  const { folder, name } = router.options
  const [leaf] = parseCertificates(readFileSync(join(folder, `${name}.server.cert`), 'utf8'))
  return [...leaf.dnsNames, ...leaf.ipAddresses].sort()
}

export function serverDigest(router: StockRouter): string {
  const { folder, name } = router.options
  return fileDigest(join(folder, `${name}.server.cert`))
}

/** Tunnels host and use the service `web`; routers host and use `books`. */
async function offerServices(api: ManagementApi, port: number): Promise<void> {
  const types = await api.list('config-types')
  const configTypeId = types.find(({ name }) => name === 'host.v1')?.id ?? ''
  const data = { protocol: 'tcp', address: '127.0.0.1', port }
  const config = await api.post('configs', { name: 'web server', configTypeId, data })
  for (const name of ['web', 'books']) {
    const body = { name, encryptionRequired: true, configs: [config], roleAttributes: [name] }
    await api.post('services', body)
  }
  await offerTo(api, { name: 'host web', type: 'Bind', identity: '#hosts', service: '#web' })
  await offerTo(api, { name: 'use web', type: 'Dial', identity: '#users', service: '#web' })
  const semantic = 'AnyOf'
  await api.post('edge-router-policies', {
    name: 'all',
    semantic,
    identityRoles: ['#all'],
    edgeRouterRoles: ['#public'],
  })
  await api.post('service-edge-router-policies', {
    name: 'all',
    semantic,
    serviceRoles: ['#all'],
    edgeRouterRoles: ['#all'],
  })
}

interface Offer {
  readonly name: string
  readonly type: 'Bind' | 'Dial'
  /** A role of identities. */
  readonly identity: string
  readonly service: string
}

async function offerTo(api: ManagementApi, offer: Offer): Promise<void> {
  const { name, type, identity, service } = offer
  const roles = { identityRoles: [identity], serviceRoles: [service] }
  await api.post('service-policies', { name, type, semantic: 'AnyOf', ...roles })
}

async function createIdentity(
  api: ManagementApi,
  name: string,
  roleAttributes: readonly string[],
): Promise<string> {
  const enrollment = { ott: true }
  const body = { name, type: 'Default', isAdmin: false, roleAttributes, enrollment }
  return await api.post('identities', body)
}

async function identityToken(api: ManagementApi, id: string): Promise<string> {
  const { enrollment } = await api.detail<{ enrollment: { ott: { jwt: string } } }>(
    `identities/${id}`,
  )
  return enrollment.ott.jwt
}

/** Waits until the member has the record of the router. Returns its token. */
async function routerToken(api: ManagementApi, id: string): Promise<string> {
  const path = `edge-routers/${id}`
  return await until('the token of a router', async () => {
    return (await api.detail<{ enrollmentJwt: string }>(path)).enrollmentJwt
  })
}
