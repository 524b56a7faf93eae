import { createHash } from 'node:crypto'
import { createServer as createTlsServer } from 'node:tls'
import type { AddressInfo, Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import {
  issueLeaf,
  LEAF_LIFETIME_MS,
  validityStartingAt,
} from '../../../src/pki/authority/authority.ts'
import { terminatorDialers } from '../../../src/router/dial/dialers.ts'
import { TargetSocketLimiter } from '../../../src/overlay/sockets/target-socket-limiter.ts'
import { DialFailure } from '../../../src/overlay/circuits/circuit-endpoint.ts'
import { newCa } from '../../support/authorities.ts'
import { freePort } from '../../support/ports.ts'
import { JoinedCircuits } from '../joined-circuits.ts'
import { eventually } from '../support.ts'
import { ALL_DIALERS, bytes, configured, dialTo, FarEnd, FIN, TestTarget } from './support.ts'
import { dialErrorCodes } from '../../../src/channel/messages/dial-error.ts'

// Goal: a circuit and a TCP connection form one stream in each direction, whichever end closes,
// stalls or fails.

let circuits: JoinedCircuits
let target: TestTarget
let caPem = ''
const ownPorts = new Set<number>()
beforeEach(async () => {
  circuits = new JoinedCircuits()
  target = await TestTarget.open()
  ownPorts.clear()
})
afterEach(() => target.close())

function dial(
  destination: string,
  { timeoutMs = 20_000, binding = 'transport', signal = new AbortController().signal } = {},
) {
  const dialer = terminatorDialers({
    config: configured(ALL_DIALERS).dialers,
    circuits,
    caPem: () => caPem,
    ownPorts: () => ownPorts,
    sockets: new TargetSocketLimiter(),
  }).get(binding)
  if (dialer === undefined) throw new Error('no such binding')
  return dialer.dial(dialTo(destination, timeoutMs), signal)
}

async function failure(...args: Parameters<typeof dial>): Promise<DialFailure> {
  const error: unknown = await dial(...args).then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (error instanceof DialFailure) return error
  throw new Error(`no DialFailure: ${String(error)}`)
}

/** Dials a circuit to the target, and returns it with the target's socket. */
async function bridged() {
  await dial(target.address)
  const far = new FarEnd(circuits)
  await eventually(() => target.sockets.length).toBe(1)
  const [socket] = target.sockets
  if (socket === undefined) throw new Error('no socket')
  return { far, socket }
}

describe('A dialed TCP target', () => {
  test('is reset if data for it could not be delivered, so that it does not see a regular end of the stream', async () => {
    const { far, socket } = await bridged()
    const errors: string[] = []
    let hasEnded = false
    socket.on('error', (error: NodeJS.ErrnoException) => errors.push(error.code ?? ''))
    socket.on('end', () => (hasEnded = true))
    socket.resume()
    far.end.abort('the client is gone')
    await eventually(() => socket.destroyed).toBe(true)
    expect([errors, hasEnded]).toEqual([['ECONNRESET'], false])
  })

  test('that resets its connection is reported to the client as failed, not as a regular end of the stream', async () => {
    const { far, socket } = await bridged()
    socket.write('half of the')
    await eventually(() => far.text).toBe('half of the')
    socket.resetAndDestroy()
    await eventually(() => far.isWhole).toBe(false)
    expect(far.isFinished).toBe(false)
  })

  test('receives the circuit’s data and responds, and the controller receives the addresses of the socket', async () => {
    const peerData = await dial(target.address)
    const far = new FarEnd(circuits)
    await eventually(() => target.sockets.length).toBe(1)
    const [socket] = target.sockets
    expect(Buffer.from(peerData.get(1111) ?? []).toString()).toBe(`127.0.0.1:${target.port}`)
    expect(Buffer.from(peerData.get(1110) ?? []).toString()).toBe(`127.0.0.1:${socket?.remotePort}`)
    socket?.on('data', (chunk: Buffer) => socket.write(`got ${chunk.toString()}`))
    far.send('hello')
    await eventually(() => far.text).toBe('got hello')
  })

  test('can close its sending direction, which the circuit signals with a FIN flag and its last payload, and still receives data', async () => {
    const { far, socket } = await bridged()
    let heard = ''
    socket.on('data', (chunk: Buffer) => (heard += chunk.toString()))
    socket.end('last words')
    await eventually(() => far.isFinished).toBe(true)
    expect(far.text).toBe('last words')
    expect(far.pieces.at(-1)).toMatchObject({ edgeFlags: FIN })
    far.send('still here')
    await eventually(() => heard).toBe('still here')
    expect(far.closedFor).toBeNull()
    far.end.finish()
    await eventually(() => far.closedFor).not.toBeNull()
  })

  test.each([
    ['a payload with the flag FIN', (far: FarEnd) => far.send('that was all', FIN)],
    ['the end of all payloads', (far: FarEnd) => (far.send('that was all'), far.end.finish())],
  ])('sees the end of the client’s data after %s, and can still send data', async (_, end) => {
    const { far, socket } = await bridged()
    let heard = ''
    socket.on('data', (chunk: Buffer) => (heard += chunk.toString()))
    socket.once('end', () => socket.end(`bytes: ${heard.length}`))
    end(far)
    await eventually(() => far.text).toBe('bytes: 12')
    await eventually(() => far.isFinished).toBe(true)
  })

  test('sends data in pieces of at most 32 KiB', async () => {
    const { far, socket } = await bridged()
    socket.end(Buffer.alloc(100_000))
    await eventually(() => far.isFinished).toBe(true)
    expect(Math.max(...far.sizes)).toBe(32 * 1024)
    expect(far.sizes.reduce((sum, size) => sum + size, 0)).toBe(100_000)
  })

  test('is not read while the circuit accepts no more data, and no data is lost', async () => {
    const { far, socket } = await bridged()
    far.takes = false
    const total = 32 * 1024 * 1024
    const sent = createHash('sha256')
    let sentBytes = 0
    const pump = (async () => {
      for (const chunk of bytes(total)) {
        sent.update(chunk)
        sentBytes += chunk.length
        if (!socket.write(chunk)) await new Promise((done) => socket.once('drain', done))
      }
      socket.end()
    })()
    await eventually(() => far.pieces.length).toBe(1)
    // The system buffers between the target and the router fill, and the target waits.
    let before = -1
    await eventually(() => {
      const isStill = before === sentBytes
      before = sentBytes
      return isStill
    }).toBe(true)
    expect(sentBytes).toBeLessThan(total)
    expect(circuits.waitedBytesMax).toBeLessThan(256 * 1024)
    far.takeAll()
    await pump
    await eventually(() => far.isFinished).toBe(true)
    const got = createHash('sha256')
    for (const { body } of far.pieces) got.update(body)
    expect(got.digest('hex')).toBe(sent.digest('hex'))
  })

  test('slows down the circuit if it reads slowly, and receives everything', async () => {
    const { far, socket } = await bridged()
    socket.pause()
    const total = 32 * 1024 * 1024
    const sent = createHash('sha256')
    let sentBytes = 0
    const pump = far
      .sendAll(
        (function* () {
          for (const chunk of bytes(total, 16 * 1024)) {
            sent.update(chunk)
            sentBytes += chunk.length
            yield chunk
          }
        })(),
      )
      .then(() => far.end.finish())
    let before = -1
    await eventually(() => {
      const isStill = before === sentBytes && sentBytes > 0
      before = sentBytes
      return isStill
    }).toBe(true)
    expect(sentBytes).toBeLessThan(total)
    const got = createHash('sha256')
    socket.on('data', (chunk: Buffer) => got.update(chunk))
    socket.resume()
    const ended = new Promise((done) => socket.once('end', done))
    await pump
    await ended
    expect(got.digest('hex')).toBe(sent.digest('hex'))
    expect(circuits.waitedBytesMax).toBeLessThan(256 * 1024)
  })

  test('ends the circuit with the reason if it resets the connection', async () => {
    const { far, socket } = await bridged()
    socket.resetAndDestroy()
    await eventually(() => far.closedFor).toMatch(/ECONNRESET/)
  })

  test('is closed when its circuit ends, after it has received everything', async () => {
    const { far, socket } = await bridged()
    let heard = 0
    socket.on('data', (chunk: Buffer) => (heard += chunk.length))
    const closed = new Promise((done) => socket.once('close', done))
    socket.on('end', () => socket.end())
    await far.sendAll(bytes(1024 * 1024))
    far.end.close('done')
    await closed
    expect(heard).toBe(1024 * 1024)
  })

  test('is closed when the circuit ends, even if it does not close its own side', async () => {
    const { far, socket } = await bridged()
    far.end.close('done')
    socket.on('data', () => undefined)
    await eventually(() => {
      socket.write('still talking')
      return socket.destroyed
    }).toBe(true)
  })
})

describe('A failed dial is reported with this cause:', () => {
  test('the target refused the connection', async () => {
    expect((await failure(`tcp:127.0.0.1:${await freePort()}`)).code).toBe(dialErrorCodes.refused)
  })

  test('the name is unknown', async () => {
    expect((await failure('tcp:no-such-host.invalid:80')).code).toBe(dialErrorCodes.unknownName)
  })

  test('there was no response in time', async () => {
    // A listener that never accepts, and whose queue is full, so a client receives no answer.
    const silent = createTlsServer(() => undefined)
    await new Promise<void>((done) => silent.listen(0, '127.0.0.1', done))
    silent.removeAllListeners('connection')
    const { port } = silent.address() as AddressInfo
    const { code, message } = await failure(`tls:127.0.0.1:${port}`, { timeoutMs: 100 })
    expect([code, message]).toEqual([
      dialErrorCodes.timedOut,
      expect.stringMatching(/within 100 ms/),
    ])
    silent.close()
  })

  test('there was no response within the dialer’s connectTimeout, although the controller waits longer', async () => {
    const silent = createTlsServer(() => undefined)
    await new Promise<void>((done) => silent.listen(0, '127.0.0.1', done))
    silent.removeAllListeners('connection')
    const { port } = silent.address() as AddressInfo
    const dialer = terminatorDialers({
      config: configured('dialers: [{binding: transport, options: {connectTimeout: 50ms}}]')
        .dialers,
      circuits,
      caPem: () => caPem,
      ownPorts: () => ownPorts,
      sockets: new TargetSocketLimiter(),
    }).get('transport')
    const dialed = dialer?.dial(dialTo(`tls:127.0.0.1:${port}`), new AbortController().signal)
    await expect(dialed).rejects.toThrow(/within 50 ms/)
    silent.close()
  })

  test.each(['nonsense', 'tcp:host', 'tcp:127.0.0.1:0', 'tcp:127.0.0.1:70000', 'ftp:127.0.0.1:21'])(
    '%s is not an address',
    async (destination) => {
      expect((await failure(destination)).code).toBe(dialErrorCodes.misconfiguredTerminator)
    },
  )

  test.each(['proxy', 'proxy_udp'])('the binding %s is only for listeners', async (binding) => {
    const { code, message } = await failure(target.address, { binding })
    expect([code, message]).toEqual([
      dialErrorCodes.misconfiguredTerminator,
      expect.stringMatching(/is for listeners/),
    ])
  })

  test('the target is a listener of this router, which would dial itself endlessly', async () => {
    ownPorts.add(target.port)
    expect((await failure(target.address)).code).toBe(dialErrorCodes.portNotAllowed)
    await eventually(() =>
      target.sockets.every(({ destroyed, readableEnded }) => destroyed || readableEnded),
    ).toBe(true)
  })

  test('the circuit has already ended', async () => {
    const gone = new AbortController()
    gone.abort()
    expect((await failure(target.address, { signal: gone.signal })).message).toMatch(/has ended/)
    expect(circuits.ends.size).toBe(0)
  })
})

test('A router dials only with the bindings in its configuration', () => {
  const named = (sections: string): string[] => [
    ...terminatorDialers({
      config: configured(sections).dialers,
      circuits,
      caPem: () => '',
      ownPorts: () => ownPorts,
      sockets: new TargetSocketLimiter(),
    }).keys(),
  ]
  expect(named('')).toEqual([])
  expect(named('dialers: [{binding: transport}]')).toEqual(['transport'])
  expect(named('dialers: [{binding: transport_udp}]')).toEqual(['transport_udp', 'udp'])
})

describe('A dialed TLS target', () => {
  test('is verified against the network CA, and receives no client certificate', async () => {
    const root = await newCa('network root', Date.now())
    const other = await newCa('another root', Date.now())
    const leaf = await issueLeaf({
      issuer: root,
      commonName: 'target',
      uris: [],
      hosts: ['localhost'],
      usages: ['server'],
      validity: validityStartingAt(Date.now(), LEAF_LIFETIME_MS),
    })
    let shown: unknown = null
    const sockets: Socket[] = []
    const raw: Socket[] = []
    const server = createTlsServer(
      {
        cert: leaf.certificatePem,
        key: leaf.privateKeyPem,
        requestCert: true,
        rejectUnauthorized: false,
        allowHalfOpen: true,
      },
      (socket) => {
        sockets.push(socket)
        shown = socket.getPeerX509Certificate()
        let heard = ''
        socket.on('data', (chunk: Buffer) => (heard += chunk.toString()))
        socket.on('end', () => socket.end(`after the end: ${heard}`))
      },
    )
    server.on('connection', (socket: Socket) => raw.push(socket))
    server.on('tlsClientError', (_, socket) => socket.destroy())
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    const { port } = server.address() as AddressInfo
    caPem = other.certificatePem
    expect((await failure(`tls:localhost:${port}`)).code).toBe(dialErrorCodes.other)
    caPem = root.certificatePem
    expect((await failure(`tls:127.0.0.1:${port}`)).message).toMatch(/altnames/i)
    await dial(`tls:localhost:${port}`)
    const far = new FarEnd(circuits)
    far.send('secret')
    far.end.finish()
    await eventually(() => far.text).toBe('after the end: secret')
    await eventually(() => sockets.map(({ closed }) => closed)).toEqual([true])
    expect(shown).toBeUndefined()
    await eventually(() => far.closedFor).not.toBeNull()
    for (const socket of raw) socket.destroy()
    await new Promise<void>((done) => server.close(() => done()))
  })
})
