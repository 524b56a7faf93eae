import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { createWriteStream, readFileSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'

import { until } from '../process/support/client.ts'
import { flotilla } from '../process/support/cluster.ts'
import { Fleet } from '../process/support/fleet.ts'
import { OurRouter } from '../stock/our-router.ts'
import { driveInNamespace } from '../support/network-namespace.ts'
import { freePort } from '../support/ports.ts'
import { DriveRecords, echoed, echoedDatagram } from './tunnel-records.ts'

// Runs `flotilla tunnel run` on both sides: one tunnel hosts, one offers ports on its host, one
// intercepts. A controller is killed, then the edge router that carries the circuits; then a policy
// is removed, and the tunnels stop. All are processes of this checkout in a separate network
// namespace. `node test/chaos/tunnel-program-drive.ts`

const NAME_SERVER = '127.0.0.1:5353'
const EXIT_FAILED = 1
const BULK_BYTES = 32 * 1024 * 1024

/** `flotilla tunnel run` in a separate process. */
class TunnelProcess {
  readonly #child: ChildProcess
  readonly #log: string

  constructor(folder: string, name: string, args: readonly string[]) {
    this.#log = join(folder, `${name}.log`)
    const identity = join(folder, `${name}.json`)
    const words = ['tunnel', 'run', '--identity', identity, ...args]
    this.#child = spawn(flotilla, words, { stdio: ['ignore', 'pipe', 'pipe'] })
    const log = createWriteStream(this.#log, { flags: 'a' })
    this.#child.stdout?.pipe(log)
    this.#child.stderr?.pipe(log)
  }

  get log(): string {
    return readFileSync(this.#log, 'utf8')
  }

  /** @returns the exit code of the program, and how long its stop took. */
  async stop(): Promise<{ readonly code: number | null; readonly ms: number }> {
    const beganMs = performance.now()
    if (this.#child.exitCode === null) {
      this.#child.kill('SIGTERM')
      await once(this.#child, 'exit')
    }
    return { code: this.#child.exitCode, ms: Math.round(performance.now() - beganMs) }
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }
}

/** Sends all data, ends the stream, and reads until the other side ends it. */
async function exchanged(port: number, data: Uint8Array): Promise<Buffer> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const parts: Buffer[] = []
  socket.on('data', (part: Buffer) => parts.push(part))
  socket.end(data)
  await once(socket, 'end')
  socket.destroy()
  return Buffer.concat(parts)
}

class Faults {
  readonly all: string[] = []

  async expect(what: string, holds: () => Promise<boolean>): Promise<void> {
    try {
      await until(what, holds)
      console.log(`so        ${what}`)
    } catch (error) {
      this.all.push(what)
      console.log(`NOT       ${what}: ${String(error)}`)
    }
  }

  async reach(what: string, ask: () => Promise<string>): Promise<void> {
    const beganMs = performance.now()
    await this.expect(what, async () => (await ask()) === 'hello')
    console.log(`          after ${Math.round(performance.now() - beganMs)} ms`)
  }
}

const sha256 = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex')

async function drive(): Promise<void> {
  const faults = new Faults()
  const routers: OurRouter[] = []
  const tunnels: TunnelProcess[] = []
  const tcp = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined).pipe(socket)
  })
  const udp = createSocket('udp4')
  udp.on('message', (body, { port, address }) => udp.send(body, port, address))
  await new Promise<void>((done) => tcp.listen(0, '127.0.0.1', done))
  await new Promise<void>((done) => udp.bind(0, '127.0.0.1', done))
  await using fleet = await Fleet.create(3)
  await fleet.init()
  for (const k of [2, 3]) await fleet.join(k, 1)
  const network = new DriveRecords(await fleet.loggedIn(2))
  try {
    for (const name of ['left', 'right']) {
      const { jwt } = await network.router(name)
      const router = new OurRouter({
        folder: join(fleet.dir, name),
        endpoint: `tls:127.0.0.1:${fleet.port + 101}`,
        linkPort: await freePort(),
        edgePort: await freePort(),
      })
      await router.enroll(jwt)
      router.start()
      routers.push(router)
    }
    const ids = new Map<string, string>()
    for (const name of ['server', 'laptop', 'desk']) {
      const { id, jwt } = await network.identity(name)
      ids.set(name, id)
      const token = join(fleet.dir, `${name}.jwt`)
      writeFileSync(token, jwt, { mode: 0o600 })
      const out = join(fleet.dir, `${name}.json`)
      const { code, stderr } = await fleet.cli(['identity', 'enroll', token, '--out', out])
      if (code !== 0) throw new Error(stderr)
    }
    const { port: tcpPort } = tcp.address() as { port: number }
    const host = { address: '127.0.0.1' }
    const streams = { ...host, protocol: 'tcp', port: tcpPort }
    const datagrams = { ...host, protocol: 'udp', port: udp.address().port }
    await network.service('web', streams, ['web.corp.example'], 80)
    await network.service('words', datagrams, ['words.corp.example'], 7)
    await network.service('clear', streams, ['clear.example'], 80, false)
    const dialPolicy = await network.policies(ids, ['server'], ['laptop', 'desk'])
    await network.edgePolicies()

    const ports = {
      web: await freePort(),
      words: await freePort(),
      clear: await freePort(),
      late: await freePort(),
    }
    const started = (name: string, args: readonly string[]): TunnelProcess => {
      const tunnel = new TunnelProcess(fleet.dir, name, args)
      tunnels.push(tunnel)
      return tunnel
    }
    const server = started('server', [])
    const laptop = started('laptop', [
      '--proxy',
      `web:${ports.web}`,
      `words:${ports.words}:udp`,
      `clear:${ports.clear}`,
      `late:${ports.late}`,
    ])
    await faults.reach('TCP, encrypted, by a port', () => echoed('127.0.0.1', ports.web))
    await faults.reach('UDP, encrypted, by a port', () => echoedDatagram('127.0.0.1', ports.words))
    await faults.reach('TCP, in the clear, by a port', () => echoed('127.0.0.1', ports.clear))
    const data = randomBytes(BULK_BYTES)
    const beganMs = performance.now()
    await faults.expect(
      '32 MiB come back whole, and end',
      async () => sha256(await exchanged(ports.web, data)) === sha256(data),
    )
    const seconds = (performance.now() - beganMs) / 1000
    console.log(`          ${Math.round(BULK_BYTES / 1024 / 1024 / seconds)} MiB/s there and back`)

    const kept: Socket = connect({ host: '127.0.0.1', port: ports.web })
    kept.on('error', () => undefined)
    const said = async (word: string): Promise<boolean> => {
      kept.write(word)
      const [read] = (await once(kept, 'data')) as [Buffer]
      return read.toString() === word
    }
    await faults.expect('a connection is open', () => said('before'))
    await fleet.stop(1, 'SIGKILL')
    console.log('          the first controller, which all have enrolled at, is killed')
    await faults.expect('the connection goes on', () => said('after'))
    await faults.reach('a new one', () => echoed('127.0.0.1', ports.web))
    await network.service('late', streams, ['late.example'], 80)
    await faults.reach('a service made since then', () => echoed('127.0.0.1', ports.late))
    for (const [at, router] of routers.entries()) {
      await router.kill()
      console.log(`          edge router ${at + 1} is killed`)
      await faults.reach('a new one by the other edge router', () => echoed('127.0.0.1', ports.web))
      router.start()
      await faults.expect('both edge routers are back', async () => {
        const count = (text: string): number => text.split('"edge router connected"').length - 1
        await Promise.resolve()
        return count(laptop.log) >= at + 3 && count(server.log) >= at + 3
      })
    }
    const desk = started('desk', ['--mode', 'tproxy', '--resolver', `udp://${NAME_SERVER}`])
    const resolver = new Resolver({ timeout: 2000, tries: 1 })
    resolver.setServers([NAME_SERVER])
    await faults.reach('TCP, encrypted, by name: tproxy', async () =>
      echoed((await resolver.resolve4('web.corp.example'))[0] ?? '', 80),
    )
    await network.delete(`service-policies/${dialPolicy}`)
    await faults.expect('without its policy no port is open', async () => {
      return await echoed('127.0.0.1', ports.web).then(
        () => false,
        (error: Error) => error.message.includes('ECONNREFUSED'),
      )
    })
    for (const [name, tunnel] of [
      ['desk', desk],
      ['laptop', laptop],
      ['server', server],
    ] as const) {
      const { code, ms } = await tunnel.stop()
      console.log(`          ${name} stopped by SIGTERM in ${ms} ms with exit code ${code}`)
      if (code !== 0) faults.all.push(`${name} ends with ${code}`)
      if (!tunnel.log.includes('"tunnel stopped"'))
        faults.all.push(`${name} says nothing of its end`)
    }
    await faults.expect('no terminator is left', async () => (await network.terminators()) === 0)
  } finally {
    if (faults.all.length > 0) for (const tunnel of tunnels) console.log(tunnel.log.slice(-20_000))
    for (const tunnel of tunnels) tunnel.kill()
    for (const router of routers) await router.kill()
    tcp.close()
    udp.close()
  }
  console.log(faults.all.length === 0 ? 'all as it should be' : `NOT: ${faults.all.join('; ')}`)
  if (faults.all.length > 0) process.exitCode = EXIT_FAILED
}

await driveInNamespace(import.meta.filename, drive)
