import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'

import { OurRouter } from '../../stock/our-router.ts'
import { freePort } from '../../support/ports.ts'
import { type Client, until } from './client.ts'
import { Fleet } from './fleet.ts'
import { WordServer, WordStreams } from './word-streams.ts'

const names = ['entry', 'left', 'right', 'host'] as const
type RouterName = (typeof names)[number]
type Group = 'left' | 'right' | 'middle'

/**
 * Local ports of the connections of a process to a port, from the Linux kernel's list. Two
 * processes can have the same local port at the same time, for connections to different ports.
 */
function portsOf(pid: number, to: number): ReadonlySet<number> {
  const inodes = new Set<string>()
  for (const name of readdirSync(`/proc/${pid}/fd`)) {
    try {
      const [, inode] = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${name}`)) ?? []
      if (inode !== undefined) inodes.add(inode)
    } catch {
      // The connection was closed in the meantime.
    }
  }
  const [, ...lines] = readFileSync(`/proc/${pid}/net/tcp`, 'utf8').trim().split('\n')
  return new Set(
    lines.flatMap((line) => {
      const [, local = '', remote = '', , , , , , , inode = ''] = line.trim().split(/\s+/)
      return inodes.has(inode) && portIn(remote) === to ? [portIn(local)] : []
    }),
  )
}

/** @returns the port in an address of the kernel's format, `0100007F:1F90`. */
function portIn(address: string): number {
  return Number.parseInt(address.split(':')[1] ?? '', 16)
}

/** Relayed sockets with the bytes that each has carried. */
type LinkSockets = [Socket, { readonly bytes: number }][]

/** Relays the links to one router, so that a test can cut them. */
class LinkCable {
  readonly #sockets = new Map<Socket, { bytes: number; readonly other: Socket }>()
  readonly #server: Server
  /** If true, no new link can be established. */
  isOut = false

  constructor(to: number) {
    this.#server = createServer((socket) => {
      const other = connect({ port: to, host: '127.0.0.1' })
      const carried = { other, bytes: 0 }
      this.#sockets.set(socket, carried)
      for (const [from, into] of [
        [socket, other],
        [other, socket],
      ] as const) {
        from.on('data', (chunk) => (carried.bytes += chunk.length))
        from.on('error', () => into.destroy())
        from.on('close', () => {
          this.#sockets.delete(socket)
          into.destroy()
        })
        from.pipe(into)
      }
      if (this.isOut) socket.destroy()
    })
  }

  async listen(port: number): Promise<void> {
    this.#server.listen(port, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  /**
   * Cuts the link that has carried the most bytes, with all of its sockets.
   * @param dialers processes from which links come, one link each.
   * @returns how many sockets the link had.
   */
  cutBusiest(dialers: readonly number[]): number {
    const carried = (link: LinkSockets): number =>
      link.reduce((sum, [, { bytes }]) => sum + bytes, 0)
    const [busiest = []] = this.#links(dialers).sort((a, b) => carried(b) - carried(a))
    for (const [socket] of busiest) socket.destroy()
    return busiest.length
  }

  /**
   * Resolves when each link has at least two sockets: a router opens the others after the first.
   */
  async complete(dialers: readonly number[]): Promise<void> {
    await until('each link has two sockets', () =>
      Promise.resolve(this.#links(dialers).every(({ length }) => length > 1)),
    )
  }

  /** The sockets of the link from each of these processes. */
  #links(dialers: readonly number[]): LinkSockets[] {
    const { port } = this.#server.address() as AddressInfo
    return dialers.map((pid) => {
      const ports = portsOf(pid, port)
      return Array.from(this.#sockets).filter(([{ remotePort = 0 }]) => ports.has(remotePort))
    })
  }

  close(): void {
    for (const socket of this.#sockets.keys()) socket.destroy()
    this.#server.close()
  }
}

/**
 * Three controllers and four of our routers. Clients connect to `entry`; the service `far` has its
 * host at the router `host`, which is reached over `left` or `right`, and the service `near` has
 * its host at `right`.
 */
export class CircuitNetwork {
  readonly fleet: Fleet
  readonly streams = new WordStreams()
  readonly server = new WordServer()
  readonly members = new Set([1, 2, 3])
  readonly #routers = new Map<RouterName, { readonly id: string; readonly router: OurRouter }>()
  readonly #ports = { far: 0, near: 0 }
  readonly #clients = new Map<number, Client>()
  #cable: LinkCable | null = null

  private constructor(fleet: Fleet) {
    this.fleet = fleet
  }

  static async start(options: Parameters<typeof Fleet.create>[1] = {}): Promise<CircuitNetwork> {
    const network = new CircuitNetwork(await Fleet.create(4, options))
    try {
      await network.#start()
      return network
    } catch (error) {
      await network[Symbol.asyncDispose]()
      throw error
    }
  }

  async #start(): Promise<void> {
    const { fleet } = this
    await fleet.init()
    for (const k of [2, 3]) await fleet.join(k, 1)
    const port = await this.server.listen()
    const services = [await this.#post('services', { name: 'far', encryptionRequired: false })]
    services.push(await this.#post('services', { name: 'near', encryptionRequired: false }))
    const serviceRoles = services.map((id) => `@${id}`)
    const only = { semantic: 'AnyOf', serviceRoles }
    await this.#post('service-policies', {
      ...only,
      name: 'd',
      type: 'Dial',
      identityRoles: ['#all'],
    })
    await this.#post('service-edge-router-policies', {
      ...only,
      name: 's',
      edgeRouterRoles: ['#all'],
    })
    await Promise.all(names.map((name) => this.#addRouter(name)))
    const address = `tcp:127.0.0.1:${port}`
    for (const [at, service] of services.entries()) {
      const router = this.#router(at === 0 ? 'host' : 'right').id
      await this.#post('terminators', { service, router, binding: 'transport', address })
    }
    await this.linked(5)
  }

  /** The relay of the links to `entry`. */
  get cable(): LinkCable {
    if (this.#cable === null) throw new Error('the network is not started')
    return this.#cable
  }

  pids(...of: readonly RouterName[]): number[] {
    return of.map((name) => this.#router(name).router.pid)
  }

  /** Opens streams through circuits to both services. */
  async open(far: number, near: number): Promise<void> {
    await this.streams.open(far, this.#ports.far)
    await this.streams.open(near, this.#ports.near)
  }

  /** Resolves when every running controller shows at least this number of links as up. */
  async linked(count: number): Promise<void> {
    await this.#each(`${count} links`, async (client) => {
      const links = await this.#listed(client, 'links')
      return links.filter(({ state }) => state === 'Connected').length >= count
    })
  }

  /** For each running controller, the number of circuits that it owns. */
  async circuits(): Promise<ReadonlyMap<number, number>> {
    const counts = Array.from(this.running, async (k) => {
      const listed = await this.#listed(await this.#client(k), 'circuits')
      return [k, listed.length] as const
    })
    return new Map(await Promise.all(counts))
  }

  /**
   * Resolves when the numbers of circuits that the running controllers own have this sum.
   * @returns the elapsed time in ms.
   */
  async answeredFor(count: number): Promise<number> {
    const beganMs = performance.now()
    await until(`the controllers answer for ${count} circuits`, async () => {
      const counts = await this.circuits()
      const all = [...counts.values()].reduce((sum, one) => sum + one, 0)
      if (all === count) return true
      throw new Error(JSON.stringify([...counts]))
    }).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${this.fleet.logs()}`)
    })
    return performance.now() - beganMs
  }

  /**
   * Runs `act`, which makes circuits change paths, and waits until some have another path and the
   * streams have settled. @returns how many circuits have another path then.
   */
  async moved(act: () => void): Promise<number> {
    const before = await this.#ways()
    act()
    await until('circuits take another way', async () => (await this.#movedFrom(before)) > 0).catch(
      async (error: unknown) => {
        throw new Error(`${String(error)}\n${await this.#shown(before)}\n${this.fleet.logs()}`)
      },
    )
    await this.streams.settled()
    return await this.#movedFrom(before)
  }

  async #movedFrom(before: ReadonlyMap<string, string>): Promise<number> {
    return [...(await this.#ways())].filter(([id, way]) => before.get(id) !== way).length
  }

  /** The links of each circuit, by circuit ID. */
  async #ways(): Promise<ReadonlyMap<string, string>> {
    const lists = await Promise.all(
      this.running.map(async (k) => await this.#listed(await this.#client(k), 'circuits')),
    )
    return new Map(lists.flat().map(({ id, path }) => [String(id), JSON.stringify(path)]))
  }

  /**
   * Describes a failure: paths of circuits before and now, the number of open streams, and the
   * links.
   */
  async #shown(before: ReadonlyMap<string, string>): Promise<string> {
    const lists = this.running.map(async (k) => await this.#listed(await this.#client(k), 'links'))
    const links = (await Promise.all(lists)).flat().map(({ id, state }) => ({ id, state }))
    const [was, now] = [[...before], [...(await this.#ways())]]
    return JSON.stringify({ was, now, living: this.streams.living.length, links })
  }

  get running(): readonly number[] {
    return [...this.members].filter((k) => this.fleet.isRunning(k))
  }

  /** The controller that owns the most circuits. */
  async owner(): Promise<number> {
    const [most] = Array.from(await this.circuits()).sort(([, a], [, b]) => b - a)
    return most?.[0] ?? 1
  }

  /** Makes the controller that owns the most circuits the leader. @returns its number. */
  async leadByOwner(): Promise<number> {
    const owner = await this.owner()
    if ((await this.fleet.leader(owner)) !== owner) {
      await this.fleet.change(owner, 'transfer-leadership', `ctrl${owner}`)
    }
    await until('it leads', async () => (await this.fleet.leader(owner)) === owner)
    return owner
  }

  async killController(k: number): Promise<void> {
    this.#clients.delete(k)
    await this.fleet.stop(k, 'SIGKILL')
  }

  /** Removes one controller permanently, and a new one joins. */
  async replace(leaving: number, joining: number): Promise<void> {
    this.#clients.delete(leaving)
    const asked = this.running.find((k) => k !== leaving) ?? 1
    await this.fleet.change(asked, 'remove', `ctrl${leaving}`)
    await this.fleet.ended(leaving)
    this.members.delete(leaving)
    await this.fleet.join(joining, asked)
    this.members.add(joining)
  }

  async killRouter(name: RouterName): Promise<void> {
    await this.#router(name).router.kill()
  }

  async #client(k: number): Promise<Client> {
    const known = this.#clients.get(k) ?? (await this.fleet.loggedIn(k))
    this.#clients.set(k, known)
    return known
  }

  async #each(what: string, holds: (client: Client) => Promise<boolean>): Promise<void> {
    for (const k of this.running) {
      await until(`ctrl${k}: ${what}`, async () => await holds(await this.#client(k)))
    }
  }

  async #listed(client: Client, what: string): Promise<readonly Record<string, unknown>[]> {
    const { status, text, body } = await client.request('GET', `/fabric/v1/${what}?limit=500`)
    if (status !== 200) throw new Error(`${what}: ${text}`)
    return body.data as readonly Record<string, unknown>[]
  }

  #router(name: RouterName): { readonly id: string; readonly router: OurRouter } {
    const found = this.#routers.get(name)
    if (found === undefined) throw new Error(`no router ${name}`)
    return found
  }

  async #addRouter(name: RouterName): Promise<void> {
    const id = await this.#post('edge-routers', { name, isTunnelerEnabled: true })
    const client = await this.#client(1)
    const shown = await client.request('GET', `/edge/management/v1/edge-routers/${id}`)
    const { enrollmentJwt } = shown.body.data as { readonly enrollmentJwt: string }
    const linkPort = await freePort()
    const isEnd = name === 'entry' || name === 'host'
    const linkGroups: readonly Group[] = isEnd ? ['left', 'right'] : [name, 'middle']
    const router = new OurRouter({
      linkPort,
      linkGroups,
      folder: join(this.fleet.dir, name),
      endpoint: `tls:127.0.0.1:${this.fleet.port + 100}`,
      isDialedOnly: isEnd,
      // Routers between the ends serve links and clients at the same port, as OpenZiti packages do.
      ...(isEnd ? {} : { edgePort: linkPort }),
      sections: [
        'dialers: [{binding: transport}]',
        ...(name === 'entry' ? [await this.#entries()] : []),
      ],
      ...(name === 'entry' ? { linkAdvertised: await this.#cableTo(linkPort) } : {}),
    })
    await router.enroll(enrollmentJwt)
    router.start()
    this.#routers.set(name, { id, router })
  }

  async #cableTo(linkPort: number): Promise<number> {
    const port = await freePort()
    this.#cable = new LinkCable(linkPort)
    await this.#cable.listen(port)
    return port
  }

  async #entries(): Promise<string> {
    const listeners: string[] = []
    for (const service of ['far', 'near'] as const) {
      this.#ports[service] = await freePort()
      const at = `tcp:127.0.0.1:${this.#ports[service]}`
      listeners.push(`{binding: proxy, address: "${at}", advertise: "${at}", service: ${service}}`)
    }
    return `listeners: [${listeners.join(', ')}]`
  }

  async #post(path: string, body: object): Promise<string> {
    const client = await this.#client(1)
    const answer = await client.request('POST', `/edge/management/v1/${path}`, { body })
    if (answer.status !== 201) throw new Error(`${path}: ${answer.text}`)
    return (answer.body.data as { readonly id: string }).id
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.streams.close()
    this.server.close()
    this.#cable?.close()
    await Promise.all(Array.from(this.#routers.values(), ({ router }) => router.kill()))
    await this.fleet[Symbol.asyncDispose]()
  }
}
