import { execFileSync, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'

import { type Client, until } from '../process/support/client.ts'
import { Fleet } from '../process/support/fleet.ts'
import { OurRouter } from '../stock/our-router.ts'
import { allowsNamespaces } from '../support/network-namespace.ts'
import { freePort } from '../support/ports.ts'

// TCP and UDP services hosted by the tunnel of one router, reached through a tunnel in mode proxy, a transport listener and a tunnel in
// mode tproxy: by name, below a wildcard, in networks of IPv4 and IPv6, encrypted. Controllers and routers are processes of ours in a
// network namespace of their own. `node test/chaos/tunnel-drive.ts`

const NAME_SERVER = '127.0.0.1:5353'
const EXIT_FAILED = 1
const isWithin = process.env['FLOTILLA_TUNNEL_DRIVE'] === '1'

async function next(socket: Socket): Promise<string> {
  const ended = once(socket, 'close').then(() => {
    throw new Error('the connection was closed')
  })
  ended.catch(() => undefined)
  const [read] = (await Promise.race([once(socket, 'data'), ended])) as [Buffer]
  return read.toString()
}

/** A word that comes back from a service over TCP. */
async function echoed(host: string, port: number, first = ''): Promise<string> {
  const socket: Socket = connect({ host, port })
  socket.setTimeout(5000, () => socket.destroy(new Error('no answer')))
  try {
    await once(socket, 'connect')
    if (first !== '') {
      socket.write(first)
      const answer = await next(socket)
      if (!answer.includes('"scc":true')) throw new Error(answer.trim())
    }
    socket.write('hello')
    return await next(socket)
  } finally {
    socket.destroy()
  }
}

async function echoedDatagram(host: string, port: number): Promise<string> {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
  const timer = setTimeout(() => socket.emit('error', new Error('no answer')), 5000)
  try {
    socket.send('hello', port, host)
    const [read] = (await once(socket, 'message')) as [Buffer]
    return read.toString()
  } finally {
    clearTimeout(timer)
    socket.close()
  }
}

const routes = (): string =>
  ['-4', '-6']
    .flatMap((family) => {
      const shown = execFileSync('ip', [family, 'route', 'show', 'table', 'local', 'proto', '187'])
      return shown.toString().match(/(?<=local )\S+/g) ?? []
    })
    .join(' ')

async function drive(): Promise<void> {
  const faults: string[] = []
  const routers: OurRouter[] = []
  const tcp = createServer((socket) => socket.on('error', () => undefined).pipe(socket))
  const udp = createSocket('udp4')
  udp.on('message', (body, { port, address }) => udp.send(body, port, address))
  await new Promise<void>((done) => tcp.listen(0, '127.0.0.1', done))
  await new Promise<void>((done) => udp.bind(0, '127.0.0.1', done))
  await using fleet = await Fleet.create(3)
  await fleet.init()
  for (const k of [2, 3]) await fleet.join(k, 1)
  const client = await fleet.loggedIn(1)
  const network = new DriveRecords(client)
  const ports = { proxy: await freePort(), proxyUdp: await freePort(), line: await freePort() }
  const at = `tcp:127.0.0.1:${ports.line}`
  const sections = {
    host: 'listeners: [{binding: tunnel, options: {mode: host}}]',
    proxy: `listeners: [{binding: tunnel, options: {mode: proxy, services: ["web:${ports.proxy}", "words:${ports.proxyUdp}:udp"]}}]`,
    entry: `listeners: [{binding: tunnel, options: {mode: tproxy, resolver: "udp://${NAME_SERVER}"}}, {binding: transport, bind: "${at}", advertise: "127.0.0.1:${ports.line}"}]`,
  }
  const ids = new Map<string, string>()
  try {
    for (const [name, section] of Object.entries(sections)) {
      const { id, jwt } = await network.router(name)
      ids.set(name, id)
      const router = new OurRouter({
        folder: join(fleet.dir, name),
        endpoint: `tls:127.0.0.1:${fleet.port + 100}`,
        linkPort: await freePort(),
        sections: [section],
      })
      await router.enroll(jwt)
      routers.push(router)
    }
    const { port: tcpPort } = tcp.address() as { port: number }
    const host = { address: '127.0.0.1' }
    const streams = { ...host, protocol: 'tcp', port: tcpPort }
    const datagrams = { ...host, protocol: 'udp', port: udp.address().port }
    await network.service('web', streams, ['web.corp.example', '10.78.0.1'], 80)
    await network.service('shop', streams, ['*.shop.example'], 80)
    await network.service('four', streams, ['10.77.0.0/16'], 80)
    await network.service('six', streams, ['fd77::/64'], 80)
    await network.service('words', datagrams, ['words.corp.example', 'fd78::1'], 7)
    await network.service('clear', streams, ['clear.example'], 80, false)
    await network.policies(ids)
    for (const router of routers) router.start()
    const resolver = new Resolver({ timeout: 2000, tries: 1 })
    resolver.setServers([NAME_SERVER])
    const resolved = async (name: string): Promise<string> =>
      (await resolver.resolve4(name))[0] ?? ''

    const reach = async (what: string, ask: () => Promise<string>): Promise<void> => {
      try {
        await until(what, async () => (await ask()) === 'hello')
        console.log(`reached   ${what}`)
      } catch (error) {
        faults.push(what)
        console.log(`NOT       ${what}: ${String(error)}`)
      }
    }
    await reach('TCP, encrypted, by a port of mode proxy', () => echoed('127.0.0.1', ports.proxy))
    await reach('UDP, encrypted, by a port of mode proxy', () =>
      echoedDatagram('127.0.0.1', ports.proxyUdp),
    )
    const line = `${JSON.stringify({ id: 'drive', svcId: 'clear' })}\n`
    await reach('TCP, by a transport listener', () => echoed('127.0.0.1', ports.line, line))
    for (const [name, what] of [
      ['web.corp.example', 'TCP, encrypted, by name'],
      ['a.b.shop.example', 'TCP, encrypted, below a wildcard'],
      ['clear.example', 'TCP, in the clear, by name'],
    ] as const) {
      await reach(`${what}: tproxy, ${name}`, async () => echoed(await resolved(name), 80))
    }
    await reach('UDP, encrypted, by name: tproxy, words.corp.example', async () =>
      echoedDatagram(await resolved('words.corp.example'), 7),
    )
    await reach('UDP, encrypted, by an address of IPv6: tproxy, fd78::1', () =>
      echoedDatagram('fd78::1', 7),
    )
    await reach('TCP, encrypted, by an address: tproxy, 10.78.0.1', () => echoed('10.78.0.1', 80))
    await reach('TCP, encrypted, in a network: tproxy, 10.77.200.9', () =>
      echoed('10.77.200.9', 80),
    )
    await reach('TCP, encrypted, in a network of IPv6: tproxy, fd77::1:2', () =>
      echoed('fd77::1:2', 80),
    )
    console.log(`routes    ${routes()}`)
    await network.remove('four')
    const without = async (): Promise<boolean> => !routes().includes('10.77.0.0/16')
    await until('the route of a removed service goes', without)
    console.log(`routes    ${routes()} after a service was removed`)
    const entry = routers.at(-1)
    await entry?.kill()
    console.log(`routes    ${routes()} after kill -9`)
    await network.remove('six')
    entry?.start()
    await reach('TCP by name again after the start: tproxy, web.corp.example', async () =>
      echoed(await resolved('web.corp.example'), 80),
    )
    console.log(`routes    ${routes()}`)
    if (routes().includes('fd77::/64')) faults.push('a route of the killed process stays')
  } finally {
    for (const router of routers) await router.kill()
    tcp.close()
    udp.close()
  }
  console.log(faults.length === 0 ? 'all as it should be' : `NOT: ${faults.join('; ')}`)
  if (faults.length > 0) process.exitCode = EXIT_FAILED
}

/** Everything that the drive keeps at the controllers. */
class DriveRecords {
  readonly #client: Client
  readonly #services = new Map<string, string>()

  constructor(client: Client) {
    this.#client = client
  }

  async router(name: string): Promise<{ readonly id: string; readonly jwt: string }> {
    const id = await this.#post('edge-routers', { name, isTunnelerEnabled: true })
    const { enrollmentJwt } = (await this.#get(`edge-routers/${id}`)) as { enrollmentJwt: string }
    return { id, jwt: enrollmentJwt }
  }

  async service(
    name: string,
    host: { readonly protocol: string },
    addresses: readonly string[],
    port: number,
    encryptionRequired = true,
  ): Promise<void> {
    const portRanges = [{ low: port, high: port }]
    const intercept = { protocols: [host.protocol], addresses, portRanges }
    const configs = [
      await this.#config('host.v1', name, host),
      await this.#config('intercept.v1', name, intercept),
    ]
    this.#services.set(name, await this.#post('services', { name, encryptionRequired, configs }))
  }

  async policies(ids: ReadonlyMap<string, string>): Promise<void> {
    const all = { semantic: 'AnyOf', serviceRoles: ['#all'] }
    for (const [type, names] of [
      ['Bind', ['host']],
      ['Dial', ['proxy', 'entry']],
    ] as const) {
      const identityRoles = names.map((name) => `@${ids.get(name)}`)
      await this.#post('service-policies', { ...all, name: type, type, identityRoles })
    }
    const edgeRouterRoles = ['#all']
    await this.#post('service-edge-router-policies', { ...all, name: 'all', edgeRouterRoles })
  }

  async remove(name: string): Promise<void> {
    const path = `/edge/management/v1/services/${this.#services.get(name)}`
    const { status, text } = await this.#client.request('DELETE', path)
    if (status !== 200) throw new Error(`service ${name} was not removed: ${text}`)
  }

  async #config(type: string, service: string, data: object): Promise<string> {
    const filter = encodeURIComponent(`name = "${type}"`)
    const [found] = (await this.#get(`config-types?filter=${filter}`)) as { id: string }[]
    const name = `${type} of ${service}`
    return await this.#post('configs', { name, configTypeId: found?.id, data })
  }

  async #get(path: string): Promise<unknown> {
    const { status, text, body } = await this.#client.request('GET', `/edge/management/v1/${path}`)
    if (status !== 200) throw new Error(`${path}: ${text}`)
    return body.data
  }

  async #post(path: string, body: object): Promise<string> {
    const answer = await this.#client.request('POST', `/edge/management/v1/${path}`, { body })
    if (answer.status !== 201) throw new Error(`${path}: ${answer.text}`)
    return (answer.body.data as { readonly id: string }).id
  }
}

if (!allowsNamespaces()) {
  console.log('skipped: this machine lets no program make a network namespace (unshare, ip)')
} else if (isWithin) {
  await drive()
} else {
  const command = `ip link set lo up && exec "${process.execPath}" "${import.meta.filename}"`
  const args = ['--map-root-user', '--net', '--fork', '--kill-child', 'sh', '-c', command]
  const env = { ...process.env, FLOTILLA_TUNNEL_DRIVE: '1' }
  const [code] = (await once(spawn('unshare', args, { stdio: 'inherit', env }), 'exit')) as [number]
  process.exitCode = code
}
