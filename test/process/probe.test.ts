import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Json, JsonObject } from '../../src/lib/text/canonical-json.ts'
import { knownQueries, refusedOnPurpose } from '../api/generated/examples.ts'
import { Maker, NOWHERE } from '../api/generated/maker.ts'
import {
  collectionOf,
  entityAt,
  operationsIn,
  pathParameters,
  type ServedOperation,
  urlOf,
} from '../api/generated/operations.ts'
import { propertiesOf, uniqueText } from '../api/generated/schemas.ts'
import { type ApiName, apiNames, bases, placeOf, ServedAnswers } from '../support/served-answers.ts'
import { type Answer, type Client, until } from './support/client.ts'
import { TestCluster } from './support/cluster.ts'

// Goal: every served operation works on a real cluster, and the other controllers show each write
// field by field. Method: operations, bodies and expectations are generated from the served
// documents and the descriptors. The client compares every answer with its document. At the end,
// every operation must have been called and have succeeded at least once.

let cluster: TestCluster
let admins: Client[]
const documents = new Map<ApiName, ServedAnswers>()
const operations: ServedOperation[] = []
/** The status codes that each operation returned. */
const seen = new Map<string, Set<number>>()
let maker: Maker
let turn = 0
let index = ''

beforeAll(async () => {
  cluster = await TestCluster.start()
  admins = await Promise.all([1, 2, 3].map((k) => cluster.loggedIn(k)))
  for (const api of apiNames) {
    const texts = await Promise.all(
      admins.map((admin) => admin.request('GET', `${bases[api]}/openapi.json`)),
    )
    const [first, ...others] = texts.map(({ text }) => ServedAnswers.of(text))
    if (first === undefined) throw new Error('there are three')
    // The controllers must return the same object; it is the same when their documents differ only
    // in addresses.
    for (const other of others) expect(other).toBe(first)
    documents.set(api, first)
    operations.push(...operationsIn(api, first.document))
  }
  maker = new Maker(operations, (method, url, body) => ask(method, url, body))
})
afterAll(async () => {
  await cluster[Symbol.asyncDispose]()
})

function keyOf(api: string, method: string, path: string): string {
  return `${api} ${method} ${path}`
}

/** Sends a request to the next controller, which must reflect all earlier requests. */
function ask(method: string, url: string, body?: unknown): Promise<Answer> {
  turn += 1
  return askOf(admins[turn % admins.length], method, url, body)
}

async function askOf(
  client: Client | undefined,
  method: string,
  url: string,
  body?: unknown,
): Promise<Answer> {
  if (client === undefined) throw new Error('there are three')
  const answer = await client.request(method, url, {
    ...(body === undefined ? {} : { body }),
    headers: index === '' ? {} : { 'net-min-index': index },
  })
  note(method, url, answer)
  index = String(answer.headers['net-index'])
  return answer
}

function note(method: string, url: string, { status }: Answer): void {
  const place = placeOf(url)
  const template = place === null ? null : documents.get(place.api)?.templateOf(place.path)
  if (place === null || template === null || template === undefined) return
  const key = keyOf(place.api, method, template)
  seen.set(key, (seen.get(key) ?? new Set()).add(status))
}

async function done(method: string, url: string, body?: unknown): Promise<Answer> {
  const answer = await ask(method, url, body)
  expect([200, 201, 202], `${method} ${url}: ${answer.text}`).toContain(answer.status)
  return answer
}

/**
 * The operation with that method on the same collection as another operation; null when it is not
 * served.
 */
function served(method: string, path: string, api: ApiName = 'management'): ServedOperation | null {
  return (
    operations.find((one) => one.api === api && one.method === method && one.path === path) ?? null
  )
}

/** The record that all three controllers show, which must be the same. */
async function shown(url: string): Promise<JsonObject> {
  const details: JsonObject[] = []
  for (const admin of admins) {
    const answer = await askOf(admin, 'GET', url)
    expect(answer.status, `${url}: ${answer.text}`).toBe(200)
    details.push(answer.body.data as JsonObject)
  }
  const [first = {}, ...others] = details
  for (const other of others) expect(other, url).toEqual(first)
  return first
}

/** Expects each sent value to be stored, if the kind stores a field of that name. */
function expectShown(
  path: string,
  sent: JsonObject,
  detail: JsonObject,
  mode: 'create' | 'change',
): void {
  const fields = entityAt(collectionOf(path))?.fields ?? {}
  for (const [name, value] of Object.entries(sent)) {
    const field = fields[name]
    const isTaken =
      field?.settable === 'always' || (field?.settable === 'create' && mode === 'create')
    if (!isTaken || !Object.hasOwn(detail, name)) continue
    const isSet = ['references', 'attributes', 'roleList'].includes(field?.kind ?? '')
    const expected = isSet ? [...(value as string[])].sort() : value
    const isEmpty = Array.isArray(expected) && expected.length === 0
    const shown = isEmpty && field?.isNullIfEmpty === true ? null : expected
    expect(plain(detail[name] ?? null), `${path}: ${name}`).toEqual(plain(shown))
  }
}

/** Converts times, so that they are compared as times and not as texts. */
function plain(value: Json): Json {
  const isTime = typeof value === 'string' && /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$/.test(value)
  return isTime ? Date.parse(value) : value
}

/** Fields that describe the certificate of the record. */
const ofCertificate = ['commonName', 'fingerprint', 'notAfter', 'notBefore']

/** Tests one record of a kind from its creation to its deletion. */
async function liveThrough(create: ServedOperation): Promise<void> {
  const { path } = create
  const byId = `${path}/{id}`
  const sent = (await maker.body(create, 'full')) as JsonObject
  const { id } = await maker.create(create, sent)
  const url = `${bases.management}${path}/${id}`
  expectShown(path, sent, await shown(url), 'create')

  const replace = served('PUT', byId)
  if (replace !== null) {
    const body = (await maker.body(replace, 'full')) as JsonObject
    await done('PUT', url, body)
    expectShown(path, body, await shown(url), 'change')
  }
  const patch = served('PATCH', byId)
  if (patch !== null) {
    const before = await shown(url)
    const known = propertiesOf(patch.body?.schema ?? {})
    const body: JsonObject = {
      ...((await maker.body(patch, 'minimal')) as JsonObject),
      ...(known['name'] === undefined ? {} : { name: uniqueText('renamed') }),
      tags: { patched: uniqueText('tag') },
    }
    await done('PATCH', url, body)
    const after = await shown(url)
    expectShown(path, body, after, 'change')
    const moved = [
      'updatedAt',
      '_links',
      ...Object.keys(body),
      ...(body['certPem'] === undefined ? [] : ofCertificate),
    ]
    for (const name of Object.keys(before).filter((one) => !moved.includes(one))) {
      expect(after[name], `${path}: ${name} stays as it was`).toEqual(before[name])
    }
  }
  if (served('GET', path)?.isList === true) {
    for (const admin of admins) {
      const filter = encodeURIComponent(`id = "${id}"`)
      const list = await askOf(admin, 'GET', `${bases.management}${path}?filter=${filter}`)
      expect(list.body.data, list.text).toMatchObject([{ id }])
      expect(list.body.meta?.['pagination']).toMatchObject({ totalCount: 1 })
    }
  }
  for (const one of operations) {
    const isBelow = one.api === 'management' && one.path.startsWith(`${byId}/`)
    if (isBelow && one.isList && pathParameters(one).length === 1) {
      await done('GET', urlOf(one, { id }))
    }
  }
  if (served('DELETE', byId) === null) return
  await done('DELETE', url)
  for (const admin of admins) {
    expect((await askOf(admin, 'GET', url)).status, `${url} is gone`).toBe(404)
  }
}

test('every kind of record can be created, read, changed and deleted, and the records are equal on all controllers', async () => {
  const creations = operations.filter(
    ({ api, method, path }) =>
      api === 'management' && method === 'POST' && served('GET', `${path}/{id}`) !== null,
  )
  expect(creations.length).toBeGreaterThan(5)
  for (const create of creations) await liveThrough(create)
  console.log(`${creations.length} kinds: ${creations.map(({ path }) => path).join(' ')}`)
})

/** Creates an identity with a password, and a separate session on one controller. */
async function newUser(api: ApiName): Promise<{
  readonly client: Client
  readonly username: string
  readonly password: string
  readonly authenticatorId: string
  readonly sessionId: string
}> {
  const username = uniqueText('user')
  const password = 'a password of its own'
  const create = served('POST', '/authenticators')
  if (create === null) throw new Error('authenticators are served')
  const body = { ...((await maker.body(create, 'minimal')) as JsonObject), username, password }
  const { id } = await maker.create(create, body)
  turn += 1
  const client = cluster.client((turn % 3) + 1)
  const sessionId = await until('log in', async () => {
    const url = `${bases[api]}/authenticate?method=password`
    const answer = await client.request('POST', url, {
      body: { username, password },
      headers: { 'net-min-index': index },
    })
    note('POST', url, answer)
    if (answer.status !== 200) return null
    const data = answer.body.data as { id: string; token: string }
    client.token = data.token
    index = String(answer.headers['net-index'])
    return data.id
  })
  return { client, username, password, authenticatorId: id, sessionId }
}

test('users can change their own password and log out through the client and the management API, and an administrator can end their sessions', async () => {
  for (const api of ['client', 'management'] as const) {
    const { client, username, password, authenticatorId } = await newUser(api)
    const own = `${bases[api]}/current-identity/authenticators/${authenticatorId}`
    const next = 'another one of its own'
    const replaced = { currentPassword: password, username, password: next }
    expect((await askOf(client, 'PUT', own, replaced)).status).toBe(200)
    expect((await askOf(client, 'PATCH', own, { currentPassword: next, password })).status).toBe(
      200,
    )
    const gone = await askOf(client, 'DELETE', `${bases[api]}/current-api-session`)
    expect(gone.status, gone.text).toBe(200)
    expect((await askOf(client, 'GET', `${bases[api]}/current-api-session`)).status).toBe(401)
  }
  const { client, sessionId } = await newUser('client')
  await done('DELETE', `${bases.management}/api-sessions/${sessionId}`)
  expect((await askOf(client, 'GET', `${bases.client}/current-api-session`)).status).toBe(401)
})

/**
 * The URL, with IDs of existing records where possible; for a deletion it creates a separate
 * record.
 */
async function urlFor(operation: ServedOperation): Promise<string> {
  const query = knownQueries[operation.path] ?? ''
  const collection = collectionOf(operation.path)
  const isEnd = operation.method === 'DELETE' && operation.path === `${collection}/{id}`
  const fresh = isEnd ? await maker.fresh(collection).catch(() => NOWHERE) : null
  const ids =
    fresh === null ? await maker.ids(operation).catch(() => nowhere(operation)) : { id: fresh }
  return urlOf(operation, ids) + query
}

function nowhere(operation: ServedOperation): Record<string, string> {
  return Object.fromEntries(pathParameters(operation).map((name) => [name, NOWHERE]))
}

test('every operation of the API has succeeded, except for those that this test expects to be refused', async () => {
  const left = operations.filter(({ api, method, path }) => {
    const statuses = [...(seen.get(keyOf(api, method, path)) ?? [])]
    return !statuses.some((status) => status < 300)
  })
  await maker.openAll()
  // Operations that remove something run last.
  left.sort((a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE'))
  for (const operation of left) {
    const body = operation.body === null ? undefined : await maker.body(operation, 'minimal')
    // A stream would not end, so the test sends a request that is refused.
    // test/events/streams.test.ts checks the content of streams.
    const isStream = operation.path === '/events'
    const url = isStream ? `${bases.fabric}/events?entityTypes=nobody` : await urlFor(operation)
    await ask(operation.method, url, body)
  }
  const keys = operations.map(({ api, method, path }) => keyOf(api, method, path))
  expect(keys.filter((key) => !seen.has(key))).toEqual([])
  const refused = keys.filter((key) => [...(seen.get(key) ?? [])].every((status) => status >= 300))
  const told = refused.map((key) => `${key} ${[...(seen.get(key) ?? [])].join()}`)
  console.log(`${seen.size} of ${keys.length} operations called; refused: ${told.join('; ')}`)
  const extra = refused.filter((key) => !refusedOnPurpose.includes(key))
  expect(extra, `say in examples.ts what makes them valid: ${told.join('; ')}`).toEqual([])
})
