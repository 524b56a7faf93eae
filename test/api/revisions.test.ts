import { describe, expect, test } from 'vitest'
import type { RequestContext } from '../../src/api/http/request-context.ts'
import { responseFromJsonText } from '../../src/api/http/responses/envelope.ts'
import { parseIfMatch, responseWithEtag } from '../../src/api/records/conditional-requests.ts'
import { Problem } from '../../src/lib/problems.ts'
import { management, type Reply } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'

const { controller, root } = await controllerForFile()

const services = `${management}/services`
let serial = 0

async function newService(): Promise<string> {
  serial += 1
  const body = { name: `service ${serial}`, encryptionRequired: true }
  const reply = await root.call('POST', services, body)
  expect(reply.status, reply.text).toBe(201)
  return `${services}/${(reply.body.data as { id: string }).id}`
}

async function tagOf(url: string): Promise<string> {
  const { headers } = await root.get(url)
  expect(headers['etag']).toMatch(/^"[0-9]+\.[A-Za-z0-9_-]+"$/)
  return String(headers['etag'])
}

function patched(url: string, ifMatch: string, name = `renamed ${(serial += 1)}`): Promise<Reply> {
  return root.call('PATCH', url, { name }, { 'if-match': ifMatch })
}

describe('a write with the header If-Match', () => {
  test('succeeds if the record still has the revision that the caller has read, and fails if the record has changed since then', async () => {
    const url = await newService()
    const tag = await tagOf(url)
    expect((await patched(url, tag)).status).toBe(200)
    const reply = await patched(url, tag, 'lost')
    expect(reply.status).toBe(412)
    expect(reply.body.error?.code).toBe('PRECONDITION_FAILED')
    expect((await root.get(url)).text).not.toContain('lost')
    const put = { name: 'put', encryptionRequired: true }
    expect((await root.call('PUT', url, put, { 'if-match': tag })).status).toBe(412)
    expect((await root.call('DELETE', url, undefined, { 'if-match': tag })).status).toBe(412)
    const now = await tagOf(url)
    expect((await root.call('DELETE', url, undefined, { 'if-match': now })).status).toBe(200)
    expect((await patched(url, now)).status).toBe(412)
  })

  test('succeeds if one of several given revisions matches, or with * if the record exists', async () => {
    const url = await newService()
    expect((await patched(url, `"1.old", ${await tagOf(url)}`)).status).toBe(200)
    expect((await patched(url, '*')).status).toBe(200)
    expect((await patched(`${services}/nobody`, '*')).status).toBe(412)
  })

  test('fails if the header contains a weak or an unknown ETag, and is refused if the header is malformed', async () => {
    const url = await newService()
    for (const tag of [`W/${await tagOf(url)}`, '"x"', '"0"', '""', '"99999999999999999999"']) {
      expect((await patched(url, tag)).status, tag).toBe(412)
    }
    for (const text of ['x', '"', '"a" "b"', '5', ',']) {
      expect((await patched(url, text)).status, text).toBe(400)
    }
    expect(() => parseIfMatch(Array(40).fill('"1"').join(','))).toThrow(Problem)
  })

  test('is checked when its log entry is applied, not against the state of the controller that receives the request', async () => {
    const url = await newService()
    const tag = await tagOf(url)
    const { cluster } = controller
    const propose = cluster.propose.bind(cluster)
    cluster.propose = async (input) => {
      cluster.propose = propose
      expect((await root.call('PATCH', url, { name: 'first' })).status).toBe(200)
      return propose(input)
    }
    expect((await patched(url, tag, 'second')).status).toBe(412)
    expect((await root.get(url)).text).toContain('first')
  })

  test('succeeds again if its request id is repeated, although the first request changed the ETag', async () => {
    const url = await newService()
    const headers = {
      'if-match': await tagOf(url),
      'net-request-id': requestId(controller.clock.nowMs()),
    }
    const body = { name: 'once' }
    expect((await root.call('PATCH', url, body, headers)).status).toBe(200)
    expect((await root.call('PATCH', url, body, headers)).status).toBe(200)
  })

  test('is refused if it creates a record', async () => {
    const reply = await root.call('POST', services, {}, { 'if-match': '*' })
    expect(reply.status).toBe(400)
    expect(reply.body.error?.cause?.['field']).toBe('If-Match')
  })
})

describe('the response with the details of one record', () => {
  test('is 304 without a body if the caller already has the current revision', async () => {
    const url = await newService()
    const tag = await tagOf(url)
    for (const known of [tag, `"x", W/${tag}`, '*']) {
      const reply = await root.get(url, { 'if-none-match': known })
      expect(reply.status, known).toBe(304)
      expect(reply.text).toBe('')
      expect(reply.headers['etag']).toBe(tag)
    }
    expect((await root.get(url, { 'if-none-match': '"x"' })).status).toBe(200)
  })

  test('has a new ETag if only related records change, but a write with the previous ETag still succeeds', async () => {
    const url = `${management}/identities/alice-id`
    const before = await tagOf(url)
    controller.openSession('alice-id')
    expect(await tagOf(url)).not.toBe(before)
    expect((await root.get(url, { 'if-none-match': before })).status).toBe(200)
    const reply = await root.call('PATCH', url, { appData: { a: 'b' } }, { 'if-match': before })
    expect(reply.status).toBe(200)
  })
})

function requestId(ms: number): string {
  const time = ms.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000001`
}

describe('The ETag of one record', () => {
  const tagAt = (revision: number, text = '{"id":"a"}'): unknown => {
    const record = { id: 'a', createdAt: 0, updatedAt: 0, revision }
    const call = { ifNoneMatch: null } as RequestContext
    return responseWithEtag(call, record, responseFromJsonText(text)).headers?.['etag']
  }

  test('contains the revision of the record, so it differs from the ETag of another record with the same JSON', () => {
    // Revisions that differ by 4,096 use the same slot of the cache for ETags.
    expect([tagAt(1), tagAt(4097), tagAt(1)].map((tag) => String(tag).split('.')[0])).toEqual([
      '"1',
      '"4097',
      '"1',
    ])
    expect(tagAt(1)).toBe(tagAt(1))
    expect(tagAt(1)).not.toBe(tagAt(1, '{"id":"b"}'))
  })
})
