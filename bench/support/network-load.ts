import { LeanClient } from './lean-client.ts'

export interface NetworkSize {
  readonly services: number
  readonly policies: number
  readonly routers: number
}

const MANAGEMENT = '/edge/management/v1'
const CONNECTIONS = 48
/** Number of role attributes among which identities, services and routers are distributed. */
const GROUPS = 200
/**
 * Number of identities that can log in by password; hashing one for each identity would take longer
 * than everything else.
 */
const USERS = 20
const PASSWORD = 'a password of the bench'

/** Fills a network through the API of all controllers, as an import does. */
export class NetworkLoad {
  readonly identityIds: string[] = []
  readonly serviceIds: string[] = []
  readonly #urls: readonly string[]
  readonly #ca: string
  readonly #token: string

  constructor(urls: readonly string[], ca: string, token: string) {
    this.#urls = urls
    this.#ca = ca
    this.#token = token
  }

  /** Creates all records except identities. @returns their number. */
  async rest(
    { services, policies, routers }: NetworkSize,
    onDone: (what: string, perSecond: number) => void,
  ): Promise<number> {
    const make = async (
      what: string,
      count: number,
      bodyOf: (at: number) => string,
      ids: string[] = [],
    ): Promise<void> => {
      onDone(what, await this.#create(what, count, bodyOf, ids, () => undefined))
    }
    await make('edge-routers', routers, routerBody)
    await make('services', services, serviceBody, this.serviceIds)
    const third = Math.ceil(policies / 3)
    await make('service-policies', policies, servicePolicyBody)
    await make('edge-router-policies', third, (at) =>
      policyBody(at, 'identityRoles', `group-${at % GROUPS}`, 'edgeRouterRoles', `site-${at % 20}`),
    )
    await make('service-edge-router-policies', third, (at) =>
      policyBody(at, 'serviceRoles', `kind-${at % GROUPS}`, 'edgeRouterRoles', `site-${at % 20}`),
    )
    return routers + services + policies + 2 * third
  }

  /** Creates identities until there are `total`. @returns identities per second. */
  async identities(
    total: number,
    onProgress: (done: number, perSecond: number) => void,
  ): Promise<number> {
    const before = this.identityIds.length
    const perSecond = await this.#create(
      'identities',
      total - before,
      (at) => identityBody(before + at),
      this.identityIds,
      onProgress,
    )
    if (before === 0) await this.#makeUsers()
    return perSecond
  }

  async #makeUsers(): Promise<void> {
    const bodyOf = (at: number): string =>
      JSON.stringify({
        identityId: this.identityIds[at],
        method: 'updb',
        username: `user-${at}`,
        password: PASSWORD,
      })
    await this.#create('authenticators', USERS, bodyOf, [], () => undefined)
  }

  /** Logs in by password. @returns the token of the new session. */
  async logIn(client: LeanClient, turn: number): Promise<string> {
    const body = JSON.stringify({ username: `user-${turn % USERS}`, password: PASSWORD })
    const path = '/edge/client/v1/authenticate?method=password'
    const answer = await client.request('POST', path, null, body)
    if (answer.status !== 200) throw new Error(`log in: ${answer.status} ${answer.body}`)
    return (JSON.parse(answer.body) as { data: { token: string } }).data.token
  }

  async #create(
    collection: string,
    count: number,
    bodyOf: (at: number) => string,
    ids: string[],
    onProgress: (done: number, perSecond: number) => void,
  ): Promise<number> {
    const from = performance.now()
    const perSecond = (done: number): number => (done * 1000) / (performance.now() - from)
    const base = ids.length
    let next = 0
    let done = 0
    await Promise.all(
      Array.from({ length: Math.min(CONNECTIONS, count) }, async (_, at) => {
        const client = await LeanClient.connect(this.#urls[at % this.#urls.length] ?? '', this.#ca)
        for (let own = next++; own < count; own = next++) {
          ids[base + own] = await this.#createOne(client, collection, bodyOf(own))
          done += 1
          if (done % 1000 === 0) onProgress(done, perSecond(done))
        }
        client.close()
      }),
    )
    return perSecond(count)
  }

  async #createOne(client: LeanClient, collection: string, body: string): Promise<string> {
    for (;;) {
      const answer = await client.request('POST', `${MANAGEMENT}/${collection}`, this.#token, body)
      if (answer.status === 201) {
        return (JSON.parse(answer.body) as { data: { id: string } }).data.id
      }
      // With status 429, there are too many requests, and the record was not created; the loop
      // tries again.
      if (answer.status !== 429) {
        throw new Error(`${collection}: ${answer.status} ${answer.body.slice(0, 300)}`)
      }
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}

function identityBody(at: number): string {
  return JSON.stringify({
    name: `identity-${at}`,
    type: 'Default',
    isAdmin: false,
    roleAttributes: [`group-${at % GROUPS}`, `floor-${at % 7}`],
    tags: { site: `s${at % 10}` },
  })
}

function serviceBody(at: number): string {
  return JSON.stringify({
    name: `service-${at}`,
    encryptionRequired: true,
    roleAttributes: [`kind-${at % GROUPS}`],
  })
}

function routerBody(at: number): string {
  return JSON.stringify({ name: `router-${at}`, roleAttributes: [`site-${at % 20}`] })
}

/**
 * A service policy. Every fifth policy selects identities that have two role attributes at the same
 * time; the others select by one attribute.
 */
function servicePolicyBody(at: number): string {
  const isAll = at % 5 === 0
  return JSON.stringify({
    name: `policy-${at}`,
    type: at % 4 === 0 ? 'Bind' : 'Dial',
    semantic: isAll ? 'AllOf' : 'AnyOf',
    identityRoles: isAll
      ? [`#group-${at % GROUPS}`, `#floor-${at % 7}`]
      : [`#group-${at % GROUPS}`],
    serviceRoles: [`#kind-${at % GROUPS}`],
  })
}

function policyBody(at: number, own: string, a: string, other: string, b: string): string {
  return JSON.stringify({
    name: `${other}-${at}`,
    semantic: 'AnyOf',
    [own]: [`#${a}`],
    [other]: [`#${b}`],
  })
}
