import { describe, expect, test } from 'vitest'

import { seededRandom } from '../../../src/lib/random.ts'
import { clientHelloLimits, readTlsHello } from '../../../src/overlay/sockets/client-hello.ts'
import { clientHelloBytes } from '../one-port-support.ts'

/** Splits the message of one record into records with this number of bytes each. */
function inRecords(record: Buffer, size: number): Buffer {
  const message = record.subarray(5)
  const records: Buffer[] = []
  for (let at = 0; at < message.length; at += size) {
    const part = message.subarray(at, at + size)
    records.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 0xff]), part)
  }
  return Buffer.concat(records)
}

describe('A TLS ClientHello', () => {
  test.each([
    [['ziti-edge'], ['ziti-edge']],
    [
      ['ziti-link', 'h2'],
      ['ziti-link', 'h2'],
    ],
    [null, null],
  ])('is read, with its ALPN protocols %j', async (offered, protocols) => {
    expect(readTlsHello(await clientHelloBytes(offered))).toEqual({ kind: 'hello', protocols })
  })

  test('is incomplete until its last byte, and the parser returns how many bytes are still needed', async () => {
    const bytes = await clientHelloBytes(['ziti-edge'])
    for (let length = 0; length < bytes.length; length += 1) {
      expect(readTlsHello(bytes.subarray(0, length))).toEqual({
        kind: 'incomplete',
        bytesNeeded: length < 5 ? 5 : bytes.length,
      })
    }
    const more = Buffer.concat([bytes, Buffer.from('more')])
    expect(readTlsHello(more)).toMatchObject({ kind: 'hello' })
  })

  test('may consist of several records, up to a limit', async () => {
    const bytes = await clientHelloBytes(['ziti-edge'])
    const { clientHelloRecordsMax } = clientHelloLimits
    const size = Math.ceil((bytes.length - 5) / clientHelloRecordsMax)
    const hello = { kind: 'hello', protocols: ['ziti-edge'] }
    expect(readTlsHello(inRecords(bytes, size))).toEqual(hello)
    expect(readTlsHello(inRecords(bytes, Math.floor(size / 2)))).toEqual({ kind: 'invalid' })
  })

  test.each([
    ['the bytes of another protocol', Buffer.from('GET / HTTP/1.1\r\n')],
    ['another record type', Buffer.from([23, 3, 3, 0, 5, 1, 0, 0, 1, 0])],
    ['another record version', Buffer.from([22, 2, 3, 0, 5, 1, 0, 0, 1, 0])],
    ['an empty record', Buffer.from([22, 3, 1, 0, 0])],
    ['another handshake message', Buffer.from([22, 3, 3, 0, 5, 2, 0, 0, 1, 0])],
    ['a message that ends early', Buffer.from([22, 3, 3, 0, 5, 1, 0, 0, 1, 0])],
    ['a message that is too long', Buffer.from([22, 3, 3, 0, 4, 1, 255, 255, 255])],
    ['a record that is too long', Buffer.from([22, 3, 3, 255, 255])],
  ])('is invalid if it has %s', (_, bytes) => {
    expect(readTlsHello(bytes)).toEqual({ kind: 'invalid' })
  })

  test('causes no exception in any of 20,000 copies with random changes', async () => {
    const bytes = await clientHelloBytes(['ziti-edge', 'ziti-link'])
    const random = seededRandom(1)
    const kinds = new Set<string>()
    for (let copy = 0; copy < 20_000; copy += 1) {
      const changed = Buffer.from(bytes)
      for (let count = random.integer(1, 4); count > 0; count -= 1) {
        changed[random.integer(0, changed.length - 1)] = random.integer(0, 255)
      }
      kinds.add(readTlsHello(changed).kind)
    }
    expect([...kinds].toSorted()).toEqual(['hello', 'incomplete', 'invalid'])
  })
})
