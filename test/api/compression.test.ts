import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { ResponseCompression } from '../../src/api/http/responses/response-compression.ts'
import { management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { makeManyIdentities } from './support/many.ts'

const { controller } = await controllerForFile()
makeManyIdentities(controller, 100)
const many = `${management}/identities?limit=100&filter=${encodeURIComponent('name contains "many"')}`

async function ask(url: string, accepted?: string) {
  const session = { 'net-session': controller.openSession('admin-id') }
  const headers = accepted === undefined ? session : { ...session, 'accept-encoding': accepted }
  const answer = await controller.app.inject({ method: 'GET', url, headers })
  const { 'content-encoding': coding, 'content-length': length, vary } = answer.headers
  return { bytes: answer.rawPayload, status: answer.statusCode, coding, length, vary }
}

const plain = await ask(many)

describe('a list', () => {
  test.each([
    ['gzip, deflate, br', 'br', brotliDecompressSync],
    ['gzip', 'gzip', gunzipSync],
    ['br;q=0, gzip;q=0.5', 'gzip', gunzipSync],
  ] as const)(
    'is compressed for a client that accepts %s',
    async (accepted, coding, decompress) => {
      const packed = await ask(many, accepted)
      expect([packed.status, packed.coding, packed.vary]).toEqual([200, coding, 'accept-encoding'])
      expect(Number(packed.length)).toBe(packed.bytes.length)
      expect(packed.bytes.length).toBeLessThan(plain.bytes.length / 8)
      expect(decompress(packed.bytes).toString()).toBe(plain.bytes.toString())
    },
  )

  test.each(['identity', 'gzip;q=0', 'deflate', '*'])(
    'is sent uncompressed to a client that accepts %s',
    async (accepted) => {
      expect(await ask(many, accepted)).toEqual(plain)
    },
  )

  test('is sent uncompressed, with the header Vary: accept-encoding, to a client that sends no Accept-Encoding', () => {
    expect([plain.coding, plain.vary]).toEqual([undefined, 'accept-encoding'])
  })

  test('is sent uncompressed if it is small', async () => {
    const few = `${management}/identity-types?limit=1`
    expect((await ask(few, 'gzip')).coding).toBeUndefined()
  })

  test('is refused with an uncompressed response if its query is invalid', async () => {
    const wrong = await ask(`${management}/identities?filter=${'a'.repeat(3000)}`, 'gzip')
    expect([wrong.status, wrong.coding, wrong.vary]).toEqual([400, undefined, undefined])
  })
})

test('a response with an ETag is not compressed, because the ETag identifies the exact bytes', async () => {
  const appData = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`key ${at}`, 'value']))
  const headers = { 'net-session': controller.openSession('admin-id'), 'accept-encoding': 'gzip' }
  const url = `${management}/identities/many000001`
  const patched = await controller.app.inject({
    method: 'PATCH',
    url,
    headers,
    payload: { appData },
  })
  expect(patched.statusCode).toBe(200)
  const detail = await controller.app.inject({ method: 'GET', url, headers })
  expect(detail.rawPayload.length).toBeGreaterThan(2048)
  expect(detail.headers['content-encoding']).toBeUndefined()
  const etag = String(detail.headers['etag'])
  const again = await controller.app.inject({
    method: 'GET',
    url,
    headers: { ...headers, 'if-none-match': etag },
  })
  expect([again.statusCode, again.headers['content-encoding']]).toEqual([304, undefined])
})

describe('Compression of a response', () => {
  const limits = {
    compressedBytesMin: 100,
    compressedBytesMax: 10_000,
    compressedAtOnceBytesMax: 200,
    compressionsMax: 2,
  }

  test.each([
    [99, null],
    [100, 'gzip'],
    [10_000, 'gzip'],
    [10_001, null],
  ])('with %d bytes uses the content coding %s', (bytes, coding) => {
    expect(new ResponseCompression(limits).codingFor('gzip', bytes)).toBe(coding)
  })

  test('returns synchronously for small bodies, and asynchronously for larger ones', async () => {
    const compression = new ResponseCompression(limits)
    const seen: string[] = []
    const run = (bytes: number) =>
      new Promise<Buffer | null>((resolve) => {
        const isWaiting = (): void => void seen.push(`${bytes} waits`)
        compression.compress('a', 'x'.repeat(bytes), bytes, 'gzip', isWaiting, (compressed) => {
          seen.push(`${bytes} done`)
          resolve(compressed)
        })
      })
    const results = await Promise.all([run(300), run(150)])
    expect(seen).toEqual(['300 waits', '150 done', '300 done'])
    expect(results.map((bytes) => gunzipSync(bytes ?? '').length)).toEqual([300, 150])
  })
})
