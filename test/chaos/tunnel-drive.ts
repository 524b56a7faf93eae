import { execFileSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'

import { until } from '../process/support/client.ts'
import { Fleet } from '../process/support/fleet.ts'
import { OurRouter } from '../stock/our-router.ts'
import { driveInNamespace } from '../support/network-namespace.ts'
import { freePort } from '../support/ports.ts'
import { DriveRecords, echoed, echoedDatagram } from './tunnel-records.ts'

// Runs TCP and UDP services that the tunnel of one router hosts. Clients reach them through a
// tunnel in mode `proxy`, a transport listener and a tunnel in mode `tproxy`: by name, below a
// wildcard, in IPv4 and IPv6 networks, with encryption. Controllers and routers are processes of
// this checkout in a separate network namespace. `node test/chaos/tunnel-drive.ts`

const NAME_SERVER = '127.0.0.1:5353'
const EXIT_FAILED = 1

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
    await network.policies(ids, ['host'], ['proxy', 'entry'])
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

await driveInNamespace(import.meta.filename, drive)
