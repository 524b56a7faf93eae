import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import type { Client } from '../process/support/client.ts'
import { TestCluster } from '../process/support/cluster.ts'
import { freePort } from '../support/ports.ts'
import { OurRouter, type OurRouterOptions } from './our-router.ts'
import { StockRouter, type TunnelOptions } from './stock-router.ts'

export interface StockClient {
  readonly id: string
  readonly file: string
}

/** A cluster of three controllers with OpenZiti routers, none of which is online yet. */
export class StockNetwork implements AsyncDisposable {
  readonly binary: string
  readonly cluster: TestCluster
  readonly clients: readonly Client[]
  readonly routers: StockRouter[] = []
  readonly ourRouters: OurRouter[] = []
  readonly routerIds: string[] = []

  private constructor(binary: string, cluster: TestCluster, clients: readonly Client[]) {
    this.binary = binary
    this.cluster = cluster
    this.clients = clients
  }

  static async start(
    binary: string,
    names: readonly string[],
    options: Parameters<typeof TestCluster.start>[0] = {},
  ): Promise<StockNetwork> {
    const cluster = await TestCluster.start(options)
    const clients: Client[] = []
    // Stops the controllers and routers after a failure in the following lines.
    await using stack = new AsyncDisposableStack()
    const network = stack.use(new StockNetwork(binary, cluster, clients))
    for (const k of [1, 2, 3]) clients.push(await cluster.loggedIn(k))
    for (const name of names) await network.addRouter(name)
    stack.move()
    return network
  }

  client(k: number): Client {
    const client = this.clients[k - 1]
    if (client === undefined) throw new Error(`no controller ${k}`)
    return client
  }

  /**
   * @param more default link group: the group of all routers that name none; default tunnel: none.
   * @returns its ID.
   */
  async addRouter(
    name: string,
    more: { readonly linkGroups?: readonly string[]; readonly tunnel?: TunnelOptions } = {},
  ): Promise<string> {
    const { jwt, id, ...options } = await this.#newRouter(name, more.tunnel !== undefined)
    const router = new StockRouter({ binary: this.binary, name, ...more, ...options })
    await router.enroll(jwt)
    router.start()
    this.routers.push(router)
    console.log(`  ${name} has enrolled at ${options.endpoint}`)
    return id
  }

  /** Adds one of our routers, to which clients can connect; it stops when the network ends. */
  async addOurRouter(
    name: string,
    more: Pick<OurRouterOptions, 'edgeProtocol'> = {},
  ): Promise<OurRouter> {
    const { jwt, id: _, ...options } = await this.#newRouter(name)
    const router = new OurRouter({ ...options, ...more })
    await router.enroll(jwt)
    router.start()
    this.ourRouters.push(router)
    console.log(`  ${name}, of ours, has enrolled at ${options.endpoint}`)
    return router
  }

  async #newRouter(name: string, isTunnelerEnabled = false) {
    const id = await this.post('edge-routers', { name, roleAttributes: [name], isTunnelerEnabled })
    const jwt = String((await this.detail(1, `edge-routers/${id}`))['enrollmentJwt'])
    const [endpoint = ''] = endpointsIn(jwt)
    this.routerIds.push(id)
    const folder = join(this.cluster.folder, name)
    return { id, jwt, endpoint, folder, linkPort: await freePort(), edgePort: await freePort() }
  }

  /**
   * Creates an identity with `role` and enrolls it with the OpenZiti program.
   * @returns its ID and its file.
   */
  async addClient(name: string, role: string): Promise<StockClient> {
    const id = await this.post('identities', {
      name,
      type: 'Default',
      isAdmin: false,
      roleAttributes: [role],
      enrollment: { ott: true },
    })
    const { enrollment } = await this.detail(1, `identities/${id}`)
    const token = join(this.cluster.folder, `${name}.jwt`)
    const file = join(this.cluster.folder, `${name}.json`)
    writeFileSync(token, (enrollment as { ott: { jwt: string } }).ott.jwt)
    execFileSync(this.binary, ['edge', 'enroll', token, '-o', file], { stdio: 'pipe' })
    return { id, file }
  }

  /** @returns the ID of the created record. */
  async post(path: string, body: Record<string, unknown>): Promise<string> {
    const answer = await this.client(1).request('POST', `/edge/management/v1/${path}`, { body })
    if (answer.status !== 201) throw new Error(`${path}: ${JSON.stringify(answer.body)}`)
    return (answer.body.data as { id: string }).id
  }

  /** Sends a change, and expects the answer 200 or 201. */
  async manage(method: string, path: string, body?: unknown): Promise<void> {
    const answer = await this.client(1).request(method, `/edge/management/v1/${path}`, { body })
    if (![200, 201].includes(answer.status)) throw new Error(`${path}: ${answer.text}`)
  }

  async detail(k: number, path: string): Promise<Record<string, unknown>> {
    const { body } = await this.client(k).request('GET', `/edge/management/v1/${path}`)
    return body.data as Record<string, unknown>
  }

  async fabric(k: number, path: string): Promise<readonly Record<string, unknown>[]> {
    const { body } = await this.client(k).request('GET', `/fabric/v1/${path}`)
    return body.data as Record<string, unknown>[]
  }

  async areOnline(k: number, isOnline = true): Promise<boolean> {
    const shown = await Promise.all(
      this.routerIds.map((id) => this.detail(k, `edge-routers/${id}`)),
    )
    return shown.every((detail) => detail['isOnline'] === isOnline)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.routers, ...this.ourRouters].map((router) => router.kill()))
    await this.cluster[Symbol.asyncDispose]()
  }
}

function endpointsIn(jwt: string): string[] {
  const claims = JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString()) as {
    ctrls: string[]
  }
  return claims.ctrls
}
