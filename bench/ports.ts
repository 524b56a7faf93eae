import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { connect as connectHttp2 } from 'node:http2'
import { connect as connectTcp, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { parseArgs } from 'node:util'

import { create, toBinary } from '@bufbuild/protobuf'
import { ExtendRouterSchema } from '../proto/gen/router_pb.ts'
import { encodeFrame } from '../src/channel/frame.ts'
import { encodeText } from '../src/channel/headers.ts'
import { encodePemBlock } from '../src/pki/pem.ts'
import { controlContentType } from '../src/channel/messages/control.ts'
import { requestDer } from '../test/pki/support/fixtures.ts'
import { TestCluster } from '../test/process/support/cluster.ts'
import { heaviestBodies } from '../test/fabric/heavy-bodies.ts'
import { LeanClient } from './support/lean-client.ts'
import { heading, percentile } from './support/report.ts'

// Measures whether a flood at a port of a controller delays the writes of other clients. The
// latency of one administrator's writes is measured on an idle controller, and together with silent
// connections, HTTP/2 resets with a router's certificate, a router that reconnects all the time,
// and a router that sends the largest permitted messages as fast as the controller accepts them.
// Goal: p50 at most 3 times that of the idle controller, and no change of leader. `node
// bench/ports.ts`

interface Flood {
  readonly kind: string
  readonly meshPort: number
  readonly routerPort: number
  readonly cert: string
  readonly key: string
  readonly routerId: string
}

/** Messages that the router in a flood sends, by the name of the flood. */
const request = encodePemBlock('CERTIFICATE REQUEST', requestDer())
const extension = { clientCertCsr: request, serverCertCsr: request, requireVerification: true }
const extend = toBinary(ExtendRouterSchema, create(ExtendRouterSchema, extension))
const messages = new Map<string, readonly [number, Uint8Array]>()
for (const [name, contentType, body] of heaviestBodies()) {
  messages.set(`a router says: ${name}`, [contentType, body])
}
messages.set('a router says: new certificates', [controlContentType.enrollmentExtendRouter, extend])

const [first = '', given = ''] = process.argv.slice(2)
if (first === 'flood') await flood(JSON.parse(given) as Flood)
else await main()

function quiet<S extends Socket>(socket: S): S {
  return socket.on('error', () => undefined).resume()
}

/**
 * Runs the flood in a process of the lowest priority: a real attacker uses separate machines and
 * none of the cluster's processor time.
 */
async function flood(what: Flood): Promise<void> {
  const { meshPort, routerPort, cert, key, routerId } = what
  const tls = { host: '127.0.0.1', cert, key, rejectUnauthorized: false }
  const counts = { opened: 0, answered: 0 }
  let isSaying = false
  /**
   * Sends the same message over one channel again and again, as fast as the controller accepts it.
   * Dials again when the channel is closed.
   */
  const saying = (contentType: number, body: Uint8Array): void => {
    if (isSaying) return
    isSaying = true
    const frame = encodeFrame({ contentType, sequence: 1, headers: new Map(), body })
    const socket = dialled()
    const sayOn = (): void => {
      for (; !socket.destroyed && socket.writableLength < 2 ** 22; counts.opened += 1) {
        socket.write(frame)
      }
    }
    socket.once('data', sayOn)
    socket.on('data', () => (counts.answered += 1)).on('drain', sayOn)
    socket.once('close', () => (isSaying = false))
  }
  const floods: Readonly<Record<string, () => void>> = {
    'idle connections at the mesh, 1,000 a second': () => {
      for (let at = 0; at < 10; at += 1) quiet(connectTcp(meshPort, '127.0.0.1'))
      counts.opened += 10
    },
    'resets of HTTP/2 at the mesh, on 4 connections': () => {
      while (counts.opened - over < 4) resetting()
    },
    'a router that comes and goes 270 times a second': () => {
      for (let at = 0; at < 3; at += 1) comingAndGoing()
    },
    'TLS handshakes at the mesh, 300 a second': () => {
      for (let at = 0; at < 3; at += 1) {
        const socket = quiet(connectTls({ ...tls, port: meshPort, ALPNProtocols: ['h2'] }))
        socket.once('secureConnect', () => setTimeout(() => socket.destroy(), 20))
        counts.opened += 1
      }
    },
  }
  let over = 0
  const resetting = (): void => {
    counts.opened += 1
    const socket = connectTls({ ...tls, port: meshPort, ALPNProtocols: ['h2'] })
    socket.on('error', () => undefined)
    const session = connectHttp2('https://mesh', { createConnection: () => socket })
    session.on('error', () => undefined)
    const timer = setInterval(() => {
      for (
        let at = 0;
        at < 10 && !session.destroyed && !session.closed && socket.readable;
        at += 1
      ) {
        const stream = session.request({ ':method': 'POST', ':path': '/x' })
        stream.on('error', () => undefined)
        stream.close(8)
        counts.answered += 1
      }
    }, 5)
    const end = (): void => {
      clearInterval(timer)
      session.destroy()
      socket.destroy()
      over += 1
    }
    session.once('close', end)
  }
  const comingAndGoing = (): void => {
    counts.opened += 1
    const socket = dialled()
    socket.once('data', () => {
      counts.answered += 1
      socket.destroy()
    })
  }
  function dialled(): TLSSocket {
    const socket = connectTls({ ...tls, port: routerPort, ALPNProtocols: ['ziti-ctrl'] })
    socket.on('error', () => undefined)
    const headers = new Map([[4, encodeText('v2.0.3|r|d|linux|amd64')]])
    const body = encodeText(routerId)
    socket.write(encodeFrame({ contentType: 0, sequence: -1, headers, body }))
    return socket
  }
  const [contentType, said] = messages.get(what.kind) ?? []
  const flooding =
    contentType === undefined || said === undefined
      ? floods[what.kind]
      : () => saying(contentType, said)
  const timer = setInterval(() => flooding?.(), 10)
  console.log('flooding')
  await once(process.stdin, 'data')
  clearInterval(timer)
  console.log(JSON.stringify(counts))
  process.exit()
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '6' },
      // Runs only the floods whose name contains this text.
      only: { type: 'string', default: '' },
    },
  })
  const seconds = Number(values.seconds)
  console.log(heading('Writes of one administrator beside floods of connections'))
  await using cluster = await TestCluster.start({ hasCalmElections: false, routers: 1 })
  const { admin } = cluster
  const leader = await cluster.leader()
  const root = await cluster.loggedIn(leader)
  const url = admin.controllers[leader - 1] ?? ''
  const client = await LeanClient.connect(url, admin.ca)
  const logIn = '/edge/management/v1/authenticate?method=password'
  const credential = JSON.stringify({ username: admin.username, password: admin.password })
  const { token } = (
    JSON.parse((await client.request('POST', logIn, null, credential)).body) as {
      data: { token: string }
    }
  ).data
  let written = 0
  const latency = async (): Promise<{ p50: number; p99: number }> => {
    const latencies: number[] = []
    const end = performance.now() + seconds * 1000
    while (performance.now() < end) {
      const from = performance.now()
      const body = JSON.stringify({ name: `service ${(written += 1)}`, encryptionRequired: true })
      const { status } = await client.request('POST', '/edge/management/v1/services', token, body)
      if (status !== 201) throw new Error(`status ${status}`)
      latencies.push(performance.now() - from)
      // The polite client pauses between two requests.
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    return { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) }
  }
  const folder = join(cluster.folder, 'router1')
  const fileOf = (ending: string): string => {
    const name = readdirSync(folder).find((one) => one.endsWith(ending) && !one.includes('server'))
    return readFileSync(join(folder, name ?? ''), 'utf8')
  }
  const { body } = await root.request('GET', '/edge/management/v1/edge-routers')
  const [router] = body.data as readonly { readonly id: string }[]
  const port = Number(new URL(url).port)
  const common = {
    meshPort: port + 200,
    routerPort: port + 100,
    cert: fileOf('.cert'),
    key: fileOf('.key'),
    routerId: router?.id ?? '',
  }
  const show = (title: string, { p50, p99 }: { p50: number; p99: number }): void =>
    console.log(`  ${title.padEnd(52)} p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`)
  const pid = cluster.pid(leader) ?? 0
  await latency()
  const before = processorMs(pid)
  show('idle', await latency())
  console.log(
    `    the leader used ${Math.round((processorMs(pid) - before) / seconds)} ms a second`,
  )
  const kinds = [
    ...messages.keys(),
    'idle connections at the mesh, 1,000 a second',
    'TLS handshakes at the mesh, 300 a second',
    'resets of HTTP/2 at the mesh, on 4 connections',
    'a router that comes and goes 270 times a second',
  ].filter((kind) => kind.includes(values.only))
  for (const kind of kinds) {
    const what = JSON.stringify({ ...common, kind })
    const args = ['-n', '19', process.execPath, import.meta.filename, 'flood', what]
    const child = spawn('nice', args, { stdio: ['pipe', 'pipe', 'inherit'] })
    await once(child.stdout, 'data')
    const before = processorMs(pid)
    show(kind, await latency())
    const usedMs = (processorMs(pid) - before) / seconds
    child.stdin.write('end')
    const [counts] = (await once(child.stdout, 'data')) as [Buffer]
    console.log(`    ${String(counts).trim()}; the leader used ${Math.round(usedMs)} ms a second`)
    if ((await cluster.leader()) !== leader) console.log('    another controller leads')
    show('  idle after it', await latency())
  }
  client.close()
}

/** Processor time of the process over all its threads since its start. */
function processorMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}
