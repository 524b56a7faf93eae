import { describe, expect, test } from 'vitest'
import { management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { makeManyIdentities } from './support/many.ts'
import { made as newRecord } from './support/network.ts'

// With a time slice of zero, each slice has one row, so the order does not depend on the speed of
// the machine.
const { controller, root, sessionOf } = await controllerForFile({
  processorSliceMs: 0,
  longListBytesMax: 1024 * 1024,
  longListBytesOfOthersMax: 64 * 1024,
  longListBytesMin: 32 * 1024,
})
const count = 600
makeManyIdentities(controller, count)
const url = `${management}/identities`
const made = `filter=${encodeURIComponent('name contains "many" limit none')}`

interface Row {
  readonly id: string
}

describe('an unpaged list', () => {
  test.each([made, `filter=${encodeURIComponent('name contains "many"')}&limit=-1`])(
    'contains the same rows as the pages of the list: %s',
    async (query) => {
      const whole = await root.get(`${url}?${query}`)
      expect(whole.status).toBe(200)
      expect(whole.body.meta?.pagination).toMatchObject({ offset: 0, totalCount: count })
      expect(Number(whole.headers['content-length'])).toBe(Buffer.byteLength(whole.text))
      const pages: unknown[] = []
      for (let offset = 0; offset < count; offset += 100) {
        const filter = encodeURIComponent('name contains "many"')
        const page = await root.get(`${url}?filter=${filter}&limit=100&offset=${offset}`)
        pages.push(...(page.body.data as Row[]))
      }
      expect(whole.body.data).toEqual(pages)
    },
  )

  test('has a lower size limit for callers without administrator rights than for administrators; above the limit, the error advises the caller to request pages', async () => {
    const reader = await root.call('POST', url, {
      name: 'reader',
      type: 'User',
      isAdmin: false,
      permissions: ['identity.read'],
    })
    const other = sessionOf((reader.body.data as Row).id)
    const reply = await other.get(`${url}?${made}`)
    expect(reply.status).toBe(400)
    expect(reply.body.error?.code).toBe('COULD_NOT_VALIDATE')
    expect(reply.body.error?.cause).toEqual({
      field: 'limit',
      reason: 'the response would exceed 65536 bytes; use limit and offset, or a narrower filter',
    })
    expect((await other.get(`${url}?limit=10`)).status).toBe(200)
    expect((await root.get(`${url}?${made}`)).status).toBe(200)
  })
})

test('a page with long rows is limited in size', async () => {
  const configs = `${management}/configs`
  const configTypeId = await newRecord(root, `${management}/config-types`, { name: 'of long data' })
  for (let i = 0; i < 20; i += 1) {
    const body = { name: `long ${i}`, configTypeId, data: { long: 'x'.repeat(80_000) } }
    expect((await root.call('POST', configs, body)).status).toBe(201)
  }
  const of = `${configs}?filter=${encodeURIComponent('name contains "long"')}`
  expect((await root.get(`${of}&limit=10`)).body.data).toHaveLength(10)
  const long20 = `${of}&limit=20`
  const reply = await root.get(long20)
  expect(reply.status).toBe(400)
  expect(reply.body.error?.cause?.['field']).toBe('limit')
})

test('a caller can request a limited number of unpaged lists at a time, and another one once a response was sent', async () => {
  const asked = Array.from({ length: 8 }, () => root.get(`${url}?${made}`))
  const statuses = (await Promise.all(asked)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 200)).toHaveLength(3)
  expect(statuses.filter((status) => status === 429)).toHaveLength(5)
  for (let round = 0; round < 8; round += 1) {
    expect((await root.get(`${url}?${made}`)).status).toBe(200)
  }
})
