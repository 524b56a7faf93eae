import { writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestCluster } from '../../test/process/support/cluster.ts'
import { jwkOf, KeyServer, TestProvider } from '../../test/support/identity-provider.ts'
import { LeanClient } from './lean-client.ts'

export const management = '/edge/management/v1'
export const client = '/edge/client/v1'
const CONNECTIONS = 16

/**
 * Three controllers with a trusted identity provider. A benchmark logs in thousands of identities
 * with the provider's tokens, without hashing passwords.
 */
export class ClusterOfPeople {
  readonly cluster: TestCluster
  readonly #server: KeyServer
  readonly #folder: string
  readonly #provider: TestProvider
  readonly #clients: readonly LeanClient[]
  readonly #rootToken: string

  private constructor(
    cluster: TestCluster,
    server: KeyServer,
    folder: string,
    provider: TestProvider,
    clients: readonly LeanClient[],
    rootToken: string,
  ) {
    this.cluster = cluster
    this.#server = server
    this.#folder = folder
    this.#provider = provider
    this.#clients = clients
    this.#rootToken = rootToken
  }

  static async start(): Promise<ClusterOfPeople> {
    const provider = new TestProvider('https://idp.test', 'bench')
    const server = await KeyServer.open([jwkOf(provider.key)])
    const folder = await mkdtemp(join(tmpdir(), 'flotilla-bench-'))
    const signerCa = join(folder, 'ca.pem')
    writeFileSync(signerCa, server.caPem)
    const cluster = await TestCluster.start({
      hasCalmElections: false,
      env: { FLOTILLA_API_RESERVED_SIGNER_HOSTS: 'true', FLOTILLA_API_SIGNER_CA: signerCa },
    })
    const { admin } = cluster
    const { token } = await cluster.loggedIn(1)
    const clients = await Promise.all(
      Array.from({ length: CONNECTIONS }, () =>
        LeanClient.connect(admin.controllers[0] ?? '', admin.ca),
      ),
    )
    const people = new ClusterOfPeople(cluster, server, folder, provider, clients, token ?? '')
    const { issuer, audience } = provider
    await people.make('external-jwt-signers', {
      name: 'idp',
      issuer,
      audience,
      enabled: true,
      jwksEndpoint: server.url,
    })
    return people
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.#clients) one.close()
    await this.cluster[Symbol.asyncDispose]()
    await this.#server.close()
    await rm(this.#folder, { recursive: true })
  }

  get rootToken(): string {
    return this.#rootToken
  }

  /** Base URL of controller `k`; the first one is 1. */
  url(k: number): string {
    return this.cluster.admin.controllers[k - 1] ?? ''
  }

  connect(k: number): Promise<LeanClient> {
    return LeanClient.connect(this.url(k), this.cluster.admin.ca)
  }

  /** Creates a record of a collection at the first controller. @returns its ID. */
  async make(collection: string, body: object): Promise<string> {
    const path = `${management}/${collection}`
    return idOf(await this.#ask(this.#clients[0], 'POST', path, this.#rootToken, body))
  }

  /** Runs the task for each number below `count`; each connection runs one task after the other. */
  async each(count: number, task: (one: LeanClient, at: number) => Promise<void>): Promise<void> {
    let next = 0
    await Promise.all(
      this.#clients.map(async (one) => {
        while (next < count) {
          next += 1
          await task(one, next - 1)
        }
      }),
    )
  }

  /** Creates identities. @returns their IDs. */
  async newIdentities(count: number, fields: (at: number) => object): Promise<string[]> {
    const ids: string[] = []
    await this.each(count, async (one, at) => {
      const body = { type: 'User', isAdmin: false, ...fields(at) }
      const path = `${management}/identities`
      ids[at] = idOf(await this.#ask(one, 'POST', path, this.#rootToken, body))
    })
    return ids
  }

  /** Logs in each identity. @returns their session tokens. */
  async sessionsOf(ids: readonly string[]): Promise<string[]> {
    const tokens: string[] = []
    await this.each(ids.length, async (one, at) => {
      const bearer = `authorization: Bearer ${await this.#provider.token(ids[at] ?? '')}\r\n`
      const path = `${client}/authenticate?method=ext-jwt`
      const answer = await this.#ask(one, 'POST', path, null, {}, bearer)
      tokens[at] = (JSON.parse(answer) as { data: { token: string } }).data.token
    })
    return tokens
  }

  /**
   * @returns the body. @throws if the response is not a success; waits and retries on status 429,
   * up to 50 times.
   */
  async #ask(
    one: LeanClient | undefined,
    method: string,
    path: string,
    token: string | null,
    body?: object,
    extra = '',
  ): Promise<string> {
    for (let tries = 0; ; tries += 1) {
      const text = body === undefined ? '' : JSON.stringify(body)
      const answer = await one?.request(method, path, token, text, extra)
      if (answer !== undefined && answer.status < 300) return answer.body
      if (answer?.status !== 429 || tries === 50) throw new Error(`${path}: ${answer?.body}`)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}

export function idOf(body: string): string {
  return (JSON.parse(body) as { data: { id: string } }).data.id
}
