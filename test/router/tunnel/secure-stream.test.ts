import { beforeAll, describe, expect, test } from 'vitest'

import type {
  CircuitApplication,
  CircuitEndpoint,
} from '../../../src/overlay/circuits/circuit-endpoint.ts'
import {
  loadCryptoLibrary,
  newKeyPair,
  SecureStream,
  deriveSessionKeys,
} from '../../../src/overlay/services/secure-stream.ts'
import type { PayloadContent } from '../../../src/channel/messages/payload.ts'

// Goal: both sides of an encrypted circuit read exactly what the other side has written, and reject
// data that was changed in transit.

beforeAll(() => loadCryptoLibrary())

class Reader implements CircuitApplication {
  readonly read: string[] = []
  finished = 0

  deliver({ body, edgeFlags }: PayloadContent): boolean {
    this.read.push(`${Buffer.from(body).toString()}${edgeFlags === 0 ? '' : ` flags ${edgeFlags}`}`)
    return true
  }

  onFinished(): void {
    this.finished += 1
  }

  onWritable(): void {}

  onClosed(): void {}
}

class Wire implements CircuitEndpoint {
  readonly circuitId = 'c1'
  isClosed = false
  readonly sent: PayloadContent[] = []
  reason = ''

  send(piece: PayloadContent): boolean {
    this.sent.push(piece)
    return true
  }

  finish(): void {}

  abort(reason: string): void {
    this.reason = reason
    this.isClosed = true
  }

  resume(): void {}

  close(): void {
    this.isClosed = true
  }
}

const piece = (text: string, edgeFlags = 0): PayloadContent => ({
  body: Buffer.from(text),
  edgeFlags,
  traceId: null,
})

function pair() {
  const [dialer, host] = [newKeyPair(), newKeyPair()]
  const side = (keys: ReturnType<typeof deriveSessionKeys>) => {
    const [reader, wire] = [new Reader(), new Wire()]
    const stream = new SecureStream(reader, keys)
    stream.start(wire)
    return { reader, wire, stream }
  }
  return {
    client: side(deriveSessionKeys('client', dialer, host.publicKey)),
    server: side(deriveSessionKeys('server', host, dialer.publicKey)),
  }
}

describe('A circuit with end-to-end encryption', () => {
  test('begins with the encryption header, adds 17 bytes to each piece of data, and delivers each piece unchanged', () => {
    const { client, server } = pair()
    client.stream.send(piece('hello'))
    client.stream.send(piece('world'))
    expect(client.wire.sent.map(({ body }) => body.length)).toEqual([24, 22, 22])
    for (const each of client.wire.sent) server.stream.deliver(each)
    expect(server.reader.read).toEqual(['hello', 'world'])
    server.stream.send(piece('answer'))
    for (const each of server.wire.sent) client.stream.deliver(each)
    expect(client.reader.read).toEqual(['answer'])
    expect(Buffer.concat(client.wire.sent.map(({ body }) => body)).includes('hello')).toBe(false)
  })

  test('transfers the end of a stream, which contains no data', () => {
    const { client, server } = pair()
    client.stream.send(piece('', 1))
    expect(client.wire.sent[1]?.body).toHaveLength(0)
    for (const each of client.wire.sent) server.stream.deliver(each)
    expect(server.reader.read).toEqual([' flags 1'])
  })

  test.each<[string, (sent: PayloadContent[]) => PayloadContent[]]>([
    [
      'changed',
      ([header, one]) => [header, { ...one, body: flipped(one?.body) }] as PayloadContent[],
    ],
    ['omitted', ([header, , two]) => [header, two] as PayloadContent[]],
    ['repeated', ([header, one]) => [header, one, one] as PayloadContent[]],
    ['out of order', ([header, one, two]) => [header, two, one] as PayloadContent[]],
    [
      'cut short',
      ([header, one]) => [header, { ...one, body: one?.body.subarray(0, 9) }] as PayloadContent[],
    ],
    ['not encrypted', ([header]) => [header, piece('hello in the clear')] as PayloadContent[]],
    ['sent without the encryption header', ([, one]) => [one] as PayloadContent[]],
  ])('ends if a piece of data is %s, and does not deliver this piece', (_what, change) => {
    const { client, server } = pair()
    client.stream.send(piece('one'))
    client.stream.send(piece('two'))
    const changed = change(client.wire.sent)
    for (const each of changed) server.stream.deliver(each)
    expect(server.wire.isClosed).toBe(true)
    expect(server.wire.reason).toMatch(/decrypted|encrypt/)
    expect(['', 'one']).toContain(server.reader.read.join(' '))
  })

  test('cannot be decrypted with other keys', () => {
    const [{ client }, { server }] = [pair(), pair()]
    client.stream.send(piece('one'))
    for (const each of client.wire.sent) server.stream.deliver(each)
    expect([server.reader.read, server.wire.isClosed]).toEqual([[], true])
  })

  test('is not created with a key of another length', () => {
    expect(() => deriveSessionKeys('client', newKeyPair(), new Uint8Array(31))).toThrow('31 bytes')
  })
})

function flipped(body: Uint8Array = new Uint8Array()): Uint8Array {
  const changed = Uint8Array.from(body)
  changed[3] = (changed[3] ?? 0) ^ 1
  return changed
}
