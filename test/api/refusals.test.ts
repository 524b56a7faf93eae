import { afterEach, describe, expect, test } from 'vitest'
import { SessionTokenSigner } from '../../src/auth/sessions/session-token-signer.ts'
import { TestTokenKeys } from '../support/token-keys.ts'
import { CallerOf, client, fabric, management } from './support/caller.ts'
import { admin, user } from './support/controller.ts'
import { controllerForFile } from './support/for-file.ts'

const { controller, root, sessionOf } = await controllerForFile()
const alice = sessionOf('alice-id')
const anonymous = new CallerOf(controller)

const services = `${management}/services`
const good = { name: 'anything', encryptionRequired: true }

describe('a request body', () => {
  test.each([
    ['is cut off', '{"name":'],
    ['has another format', 'name=x'],
    ['is a control character', '\u0000'],
    ['nests too deep', `${'['.repeat(100_000)}`],
    [
      'names a prototype member',
      `{"name":"x","encryptionRequired":true,"tags":{"__proto__":{"a":1}}}`,
    ],
    [
      'names a prototype member with an escape sequence',
      `{"name":"x","encryptionRequired":true,"tags":{"\\u005f_proto__":1}}`,
    ],
  ])('gets 400 COULD_NOT_PARSE_BODY if it %s', async (_what, text) => {
    const reply = await root.call('POST', services, text)
    expect(reply.status).toBe(400)
    expect(reply.body.error?.code).toBe('COULD_NOT_PARSE_BODY')
  })

  test.each([
    ['an operation that requires none', 'POST', `${client}/authenticate?method=cert`, 401],
    ['an operation that requires one', 'POST', services, 400],
  ] as const)(
    'with the value `null` counts as a missing body for %s',
    async (_what, method, url, status) => {
      const as = status === 401 ? anonymous : root
      const expected = status === 401 ? 'INVALID_AUTH' : 'COULD_NOT_VALIDATE'
      const reply = await as.call(method, url, 'null')
      expect([reply.status, reply.body.error?.code]).toEqual([status, expected])
    },
  )

  test('gets the response 400 if it is not valid UTF-8', async () => {
    const answer = await controller.app.inject({
      method: 'POST',
      url: services,
      headers: { 'net-session': root.token ?? '', 'content-type': 'application/json' },
      payload: Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]),
    })
    expect(answer.statusCode).toBe(400)
    expect(answer.json<{ error: { code: string } }>().error.code).toBe('COULD_NOT_PARSE_BODY')
  })

  test.each([
    [{}, 'encryptionRequired', 'encryptionRequired is required'],
    [{ encryptionRequired: true }, 'name', 'name is required'],
    [{ name: '', encryptionRequired: true }, 'name', 'name is required'],
    [{ name: 5, encryptionRequired: true }, 'name', 'name in body must be of type string'],
    [
      { name: 'x', encryptionRequired: 'yes' },
      'encryptionRequired',
      'encryptionRequired in body must be of type boolean',
    ],
    [{ ...good, maxIdleTimeMillis: '5' }, 'maxIdleTimeMillis', /must be of type integer/],
    [{ ...good, maxIdleTimeMillis: -1 }, 'maxIdleTimeMillis', /greater than or equal to 0/],
    [
      { ...good, terminatorStrategy: 'best' },
      'terminatorStrategy',
      /should be one of \[smartrouting/,
    ],
    [{ ...good, roleAttributes: ['#x'] }, 'roleAttributes', /may not be prefixed with #/],
    [{ ...good, roleAttributes: [1] }, 'roleAttributes.0', /must be of type string/],
    [{ ...good, tags: { a: { b: 1 } } }, 'tags', /tags values must be/],
    [[], 'body', 'body in body must be of type object'],
    ['"text"', 'body', 'body in body must be of type object'],
    ['null', 'body', 'body in body is required'],
  ])('that is %j gets 400 COULD_NOT_VALIDATE with the field %s', async (body, field, reason) => {
    const reply = await root.call('POST', services, body)
    expect(reply.status).toBe(400)
    expect(reply.body.error?.code).toBe('COULD_NOT_VALIDATE')
    expect(reply.body.error?.cause?.['field']).toBe(field)
    expect(reply.body.error?.cause?.['reason']).toMatch(reason)
  })

  test('is required by operations that declare it: without a body, the response is 400', async () => {
    for (const headers of [{}, { 'content-type': 'application/json' }]) {
      const reply = await root.call('POST', services, undefined, headers)
      expect(reply.status).toBe(400)
      expect(reply.body.error?.code).toBe('COULD_NOT_VALIDATE')
    }
  })

  test('of a media type other than JSON gets the response 415, and a request that accepts no supported media type gets 406', async () => {
    const xml = await root.call('POST', services, '<a/>', { 'content-type': 'application/xml' })
    expect(xml.status).toBe(415)
    expect(xml.body.error?.code).toBe('COULD_NOT_VALIDATE')
    expect(xml.body.error?.cause?.['field']).toBe('Content-Type')
    const answer = await controller.app.inject({
      url: services,
      headers: { 'net-session': root.token ?? '', accept: 'application/x-pem-file' },
    })
    expect(answer.statusCode).toBe(406)
    expect(answer.json<{ error: { code: string } }>().error.code).toBe('COULD_NOT_VALIDATE')
    for (const accept of ['*/*', 'application/*', 'text/html, application/json;q=0.9']) {
      expect((await root.get(services, { accept })).status).toBe(200)
    }
  })

  test('gets the response 413 in OpenZiti’s error envelope, for any caller, if its declared length exceeds 1 MiB', async () => {
    const big = JSON.stringify({ ...good, tags: { a: 'x'.repeat(1024 * 1024) } })
    for (const caller of [root, anonymous]) {
      const reply = await caller.call('POST', services, big)
      expect(reply.status).toBe(413)
      expect(reply.body.error?.code).toBe('REQUEST_ENTITY_TOO_LARGE')
      expect(reply.body.meta?.apiVersion).toBe('0.0.1')
    }
  })
})

describe('a request that needs a session', () => {
  test('gets 401 and a challenge with the reason if it has no session token', async () => {
    const reply = await anonymous.get(services)
    expect(reply.status).toBe(401)
    expect(reply.body.error?.code).toBe('UNAUTHORIZED')
    const missing = 'error="missing" error_description="no matching token was provided"'
    expect(reply.headers['www-authenticate']).toBe(
      `zt-session realm="zt-session" ${missing},Bearer realm="openziti-oidc" ${missing}`,
    )
  })

  test('gets 401 and a challenge with the reason if its token is forged, foreign or unknown', async () => {
    const foreignKeys = new TestTokenKeys()
    const foreign = new SessionTokenSigner(foreignKeys).tokenOf('someSession')
    const own = root.token ?? ''
    const changed = own.slice(0, -1) + (own.endsWith('A') ? 'B' : 'A')
    for (const token of [foreign, changed, 'x', 'eyJh.eyJz.', `${own}, ${own}`]) {
      const reply = await anonymous.get(services, { 'zt-session': token })
      expect(reply.status, token).toBe(401)
      expect(reply.headers['www-authenticate']).toBe(
        'zt-session realm="zt-session" error="invalid" error_description="token is invalid"',
      )
      expect(reply.text).not.toContain(token === 'x' ? foreign : token)
    }
  })

  test('is refused before its body is read if it has no session token', async () => {
    const reply = await anonymous.call('POST', services, '{"name":')
    expect(reply.status).toBe(401)
    const typed = await anonymous.call('POST', services, '<a/>', { 'content-type': 'text/xml' })
    expect(typed.status).toBe(401)
  })

  test('is refused without a challenge if a non-administrator calls a management operation', async () => {
    const asked: [string, string, unknown][] = [
      ['GET', services, undefined],
      ['POST', services, good],
      ['POST', services, '{"name":'],
      ['DELETE', `${services}/x`, undefined],
      ['GET', `${management}/service-policies`, undefined],
      ['GET', `${management}/identities`, undefined],
      ['GET', `${management}/api-sessions`, undefined],
      ['GET', `${fabric}/cluster/list-members`, undefined],
      ['POST', `${fabric}/cluster/transfer-leadership`, {}],
      ['POST', `${fabric}/cluster/add-member`, { address: 'ctrl2' }],
      ['POST', `${fabric}/cluster/remove-member`, { id: 'ctrl2' }],
      ['POST', `${fabric}/cluster/promote-member`, { id: 'ctrl2' }],
      ['POST', `${fabric}/cluster/demote-member`, { id: 'ctrl2' }],
      ['POST', `${fabric}/cluster/replace-member`, { oldId: 'ctrl1', newId: 'ctrl2' }],
      ['POST', `${fabric}/cluster/plan`, { verb: 'remove', id: 'ctrl2' }],
      ['GET', '/metrics', undefined],
      ['DELETE', `${client}/services/x`, undefined],
    ]
    for (const [method, url, body] of asked) {
      const reply = await alice.call(method, url, body)
      expect(reply.status, `${method} ${url}`).toBe(401)
      expect(reply.body.error?.code).toBe('UNAUTHORIZED')
      expect(reply.headers['www-authenticate']).toBeUndefined()
    }
    expect(controller.machine.count('service')).toBe(0)
  })
})

describe('a request path', () => {
  test('gets a 404 that repeats the path if no operation exists there', async () => {
    for (const path of [
      `${management}/nothing`,
      `${client}/nothing`,
      '/edge/x',
      '/fabric/v1/x',
      '/nothing',
    ]) {
      const reply = await root.get(path)
      expect(reply.status).toBe(404)
      expect(reply.body.error?.code).toBe('NOT_FOUND')
      expect(reply.body.error?.cause?.['message']).toMatch(/^path .* was not found$/)
    }
  })

  test('gets a 404 if it contains an id that exceeds the maximum length', async () => {
    expect((await root.get(`${services}/${'x'.repeat(5000)}`)).status).toBe(404)
  })

  test('gets a 400 if it is not a valid URL', async () => {
    const reply = await root.get(`${services}/%zz`)
    expect(reply.status).toBe(400)
    expect(reply.body.error?.code).toBe('COULD_NOT_VALIDATE')
  })

  test('gets a 405 if it does not support the method, even without a session', async () => {
    for (const [method, path] of [
      ['DELETE', services],
      ['POST', `${services}/x`],
      ['PUT', `${management}/version`],
      ['GET', `${management}/authenticate`],
      ['PATCH', `${fabric}/cluster/list-members`],
    ] as const) {
      const reply = await anonymous.call(method, path)
      expect(reply.status, `${method} ${path}`).toBe(405)
      expect(reply.body.error?.code).toBe('METHOD_NOT_ALLOWED')
    }
  })
})

describe('the error response to a list query', () => {
  test.each([
    ['filter=nothing%20%3D%20%22x%22', 'INVALID_FILTER'],
    ['filter=name%20%3D', 'INVALID_FILTER'],
    ['filter=name%20%3D%205', 'INVALID_FILTER'],
    ['filter=%22', 'INVALID_FILTER'],
    ['filter=' + '('.repeat(5000), 'INVALID_FILTER'],
    ['sort=nothing', 'INVALID_SORT_IDENTIFIER'],
    ['sort=name%20sideways', 'INVALID_SORT_IDENTIFIER'],
    ['limit=none', 'COULD_NOT_VALIDATE'],
    ['limit=1.5', 'COULD_NOT_VALIDATE'],
    ['offset=x', 'COULD_NOT_VALIDATE'],
    ['roleFilter=x', 'COULD_NOT_VALIDATE'],
    ['roleFilter=%23x&roleSemantic=Some', 'COULD_NOT_VALIDATE'],
    ['consistency=eventual', 'COULD_NOT_VALIDATE'],
  ])('that is %s has the status 400 and the code %s', async (query, code) => {
    const reply = await root.get(`${services}?${query}`)
    expect(reply.status).toBe(400)
    expect(reply.body.error?.code).toBe(code)
  })

  test('contains the unknown symbol of the filter, or the position of a syntax error', async () => {
    const unknown = await root.get(`${services}?filter=nothing%20%3D%20%22x%22`)
    expect(unknown.body.error?.cause?.['message']).toContain('unknown symbol nothing')
    const broken = await root.get(`${services}?filter=name%20%3D%20)`)
    expect(broken.body.error?.cause?.['message']).toMatch(/Unexpected symbol.* line: 1 column: 7/)
  })
})

describe('a log-in request', () => {
  const url = `${client}/authenticate`
  test.each([
    ['', {}, 400, 'COULD_NOT_VALIDATE'],
    ['?method=', {}, 400, 'COULD_NOT_VALIDATE'],
    ['?method=magic', {}, 400, 'INVALID_AUTH_METHOD'],
    ['?method=cert', {}, 401, 'INVALID_AUTH'],
    ['?method=ext-jwt', {}, 401, 'UNAUTHORIZED'],
    ['?method=password', {}, 400, 'COULD_NOT_VALIDATE'],
    ['?method=password', { username: 'admin' }, 400, 'COULD_NOT_VALIDATE'],
    ['?method=password', { username: 'adm', password: 'whatever' }, 400, 'COULD_NOT_VALIDATE'],
    [
      '?method=password',
      { username: 'admin', password: 'x'.repeat(101) },
      400,
      'COULD_NOT_VALIDATE',
    ],
    ['?method=password', { username: 'admin', password: ['correct'] }, 400, 'COULD_NOT_VALIDATE'],
    ['?method=password', { username: 'admin', password: 'wrong password' }, 401, 'INVALID_AUTH'],
    ['?method=password', { username: 'Admin', password: admin.password }, 401, 'INVALID_AUTH'],
    ['?method=password', { username: 'nobody', password: admin.password }, 401, 'INVALID_AUTH'],
    ['?method=password', { username: 'mallory', password: user.password }, 401, 'INVALID_AUTH'],
  ])('with the query "%s" and the body %j gets %i %s', async (query, body, status, code) => {
    const reply = await anonymous.call('POST', url + query, body)
    expect(reply.status).toBe(status)
    expect(reply.body.error?.code).toBe(code)
    expect(reply.text).not.toContain('whatever')
    expect(reply.text).not.toContain('x'.repeat(101))
    expect(reply.headers['zt-session']).toBeUndefined()
  })
})

describe('the request header', () => {
  test.each([
    ['net-min-index', 'five', 400, 'COULD_NOT_VALIDATE'],
    ['net-min-index', '3:', 400, 'COULD_NOT_VALIDATE'],
    ['net-min-index', '2:1', 400, 'COULD_NOT_VALIDATE'],
    ['net-min-index', '4:1', 503, 'INDEX_NOT_REACHED'],
    ['net-request-id', 'x', 400, 'COULD_NOT_VALIDATE'],
    ['net-request-id', '2b0e8a4c-6a6e-4e0b-9c55-0d4f2d1f8a11', 400, 'COULD_NOT_VALIDATE'],
  ])('%s: %s gets the response %i %s', async (name, value, status, code) => {
    const reply = await root.call('POST', services, good, { [name]: value })
    expect(reply.status).toBe(status)
    expect(reply.body.error?.code).toBe(code)
    expect(controller.machine.count('service')).toBe(0)
  })
})

test('an error response contains a message, a unique request id and both API versions', async () => {
  const first = await anonymous.get(services)
  const second = await anonymous.get(services)
  expect(first.body.error?.message).toBe(
    'The request could not be completed. The session is not authorized or the credentials are invalid',
  )
  expect(first.body.error?.requestId).toMatch(/^[0-9a-zA-Z.-]{9,10}$/)
  expect(second.body.error?.requestId).not.toBe(first.body.error?.requestId)
  expect(first.body.meta).toEqual({ apiEnrollmentVersion: '0.0.1', apiVersion: '0.0.1' })
  expect(first.body).not.toHaveProperty('data')
  expect(first.headers['content-type']).toBe('application/json')
})

test('a quarantined controller refuses to list records, and answers health checks without the state of the cluster', async () => {
  controller.refusal = 'NODE_QUARANTINED'
  try {
    const reply = await root.get(services)
    expect(reply.status).toBe(503)
    expect(reply.body.error?.code).toBe('NODE_QUARANTINED')
    expect((await anonymous.get('/health-checks')).status).toBe(200)
    // The damaged state also contains who is an administrator, so the controller must not use it.
    expect((await root.get('/health-checks')).body.data).not.toHaveProperty('node')
  } finally {
    controller.refusal = null
  }
})

describe('a replicated state that a controller finds to be corrupt during a request', () => {
  afterEach(() => {
    controller.refusal = null
  })

  /** Makes the controller find its state damaged while it waits for the cluster. */
  function findWrongDuring(step: 'propose' | 'readIndex'): void {
    const { cluster } = controller
    const original = cluster[step].bind(cluster) as (...input: never[]) => Promise<unknown>
    Object.assign(cluster, {
      [step]: async (...input: never[]) => {
        Reflect.deleteProperty(cluster, step)
        const result = await original(...input)
        controller.refusal = 'NODE_QUARANTINED'
        return result
      },
    })
  }

  test('makes the outcome of the request’s write unknown, whether the write was accepted or refused', async () => {
    const body = { name: 'made under a wrong state', encryptionRequired: true }
    for (const attempt of ['is made', 'is refused as a duplicate']) {
      findWrongDuring('propose')
      const reply = await root.call('POST', services, body)
      expect([attempt, reply.status, reply.body.error?.code]).toEqual([
        attempt,
        503,
        'OUTCOME_UNKNOWN',
      ])
      controller.refusal = null
    }
  })

  test('is not used to build a response', async () => {
    for (const path of [`${services}?consistency=linearizable`, `${services}/nowhere`]) {
      findWrongDuring('readIndex')
      const reply = await root.get(path)
      expect([path, reply.status, reply.body.error?.code]).toEqual([path, 503, 'NODE_QUARANTINED'])
      controller.refusal = null
    }
  })

  test('is not used to decide that a session has ended', async () => {
    findWrongDuring('readIndex')
    const token = controller.tokenOf('no-such-session')
    const reply = await root.get(services, { 'net-session': token })
    expect([reply.status, reply.body.error?.code]).toEqual([503, 'NODE_QUARANTINED'])
  })
})
