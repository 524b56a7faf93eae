import { afterAll, describe, expect, test } from 'vitest'
import { createServices } from '../../../src/api/services.ts'
import { allOperations } from '../../../src/api/operations.ts'
import { entitiesByName } from '../../../src/entities/registry.ts'
import type { Entity } from '../../../src/entities/define-entity.ts'
import type { Field } from '../../../src/entities/fields.ts'
import type { Json, JsonObject } from '../../../src/lib/text/canonical-json.ts'
import { apiNames, bases, type Item } from '../../support/served-answers.ts'
import { startController } from '../support/controller.ts'
import { bodyCases } from './bad-bodies.ts'
import { badListQueries, goodListQueries } from './bad-queries.ts'
import { knownQueries } from './examples.ts'
import { Maker, NOWHERE } from './maker.ts'
import {
  collectionOf,
  entityAt,
  operationsIn,
  pathParameters,
  type ServedOperation,
  urlOf,
} from './operations.ts'
import { Prober } from './prober.ts'
import { propertiesOf, sample, typesOf, uniqueText } from './schemas.ts'

// Goal: the response to any faulty request is a documented refusal, and nothing changes. Method:
// for every operation in the served documents, each fault that its schemas, its kind and its path
// permit, one at a time, with a complete controller.

const GARBAGE = ['x', 'null', `1.${'a'.repeat(12)}.${'b'.repeat(43)}`, 'a.b.c']

const controller = await startController({ logInFailuresMax: 1_000_000 })
const prober = new Prober(controller)
const operations: ServedOperation[] = []
for (const api of apiNames) {
  operations.push(...operationsIn(api, (await prober.root.served(api)).document))
}
for (const operation of operations.filter(({ isSocketOnly }) => isSocketOnly)) {
  prober.socketOnly.add(`${operation.method} ${urlOf(operation, {})}`)
}
const maker = new Maker(operations, (method, url, body) => prober.ask(method, url, body))
await maker.openAll()
// The password policy must permit every password that the schema permits.
const shortest = { primary: { updb: { minPasswordLength: 5 } } }
await prober.root.call('PATCH', '/edge/management/v1/auth-policies/default', shortest)
const permissions = new Map(
  allOperations({ ...controller.parts, ...createServices(controller.parts) }).flatMap((operation) =>
    operation.apis.map((api) => [`${api} ${operation.operationId}`, operation.permission]),
  ),
)
const nobody = prober.newCaller(null)
const alice = prober.newCaller(controller.openSession('alice-id'))

afterAll(async () => {
  console.log(`${prober.requests} requests to ${operations.length} operations`)
  await controller.close()
})

/** A valid URL, with IDs of existing records and the required query parameters. */
async function goodUrl(operation: ServedOperation): Promise<string> {
  return urlOf(operation, await maker.ids(operation)) + (knownQueries[operation.path] ?? '')
}

/** Registers a test only if the operation has something to test. */
function when(isAsked: boolean): (title: string, run: () => Promise<void>) => void {
  return isAsked ? (title, run) => test(title, { timeout: 60_000 }, run) : () => undefined
}

describe.each(operations)('$api $method $path', (operation) => {
  const { method, body, statuses } = operation
  const parameters = pathParameters(operation)

  when(!operation.isPublic)(
    'requires a session with the permission for this operation',
    async () => {
      const url = urlOf(operation, Object.fromEntries(parameters.map((name) => [name, NOWHERE])))
      const why = `${method} ${url}`
      const payload = body === null ? undefined : {}
      await prober.refused(`${why} by nobody`, [401], () =>
        prober.ask(method, url, payload, {}, nobody),
      )
      for (const token of GARBAGE) {
        for (const header of ['net-session', 'zt-session']) {
          await prober.refused(`${why} with ${header} ${token}`, [401], () =>
            prober.ask(method, url, payload, { [header]: token }, nobody),
          )
        }
      }
      const permission = permissions.get(`${operation.api} ${operation.operationId}`)
      expect(permission, `${operation.operationId} is served with a permission`).toBeDefined()
      if (permission === 'session' || permission === 'partial') return
      await prober.refused(`${why} by somebody who may not`, [401], () =>
        prober.ask(method, url, payload, {}, alice),
      )
    },
  )

  when(statuses.includes(406) && method === 'GET')(
    'answers 406 to a request that accepts none of its content types',
    async () => {
      const url = await goodUrl(operation)
      await prober.refused(`${method} ${url} for a picture`, [406], () =>
        prober.ask(method, url, undefined, { accept: 'image/png' }),
      )
    },
  )

  when(parameters.length > 0)(
    'refuses unknown ids, or returns an empty list for them',
    async () => {
      const valid = body === null ? undefined : await maker.body(operation, 'minimal')
      for (const id of [NOWHERE, 'ä/%', '...', ' ', 'x'.repeat(300)]) {
        const url = urlOf(operation, Object.fromEntries(parameters.map((name) => [name, id])))
        const asking = () => prober.ask(method, url, valid)
        // The list of records below a parent that does not exist may be empty.
        const isSubList = operation.isList && !operation.path.endsWith('}')
        if (!isSubList) await prober.refused(`${method} ${url}`, [400, 404], asking)
        else {
          const reply = await asking()
          expect([200, 400, 404], `${url}: ${reply.text}`).toContain(reply.status)
          if (reply.status === 200) expect(reply.body.data, url).toEqual([])
        }
      }
    },
  )

  when(body !== null)('accepts only well-formed JSON as its body', async () => {
    const url = await goodUrl(operation)
    const valid = JSON.stringify(await maker.body(operation, 'minimal'))
    const say = (type: string, text: string) => () =>
      prober.ask(method, url, text, { 'content-type': type })
    for (const type of [
      'text/plain',
      'application/xml',
      'application/json5',
      'x',
      'multipart/form-data',
    ]) {
      if (body?.otherTypes.includes(type) === true) continue
      await prober.refused(`${method} ${url} as ${type}`, [415], say(type, valid))
    }
    for (const text of [
      '{',
      '{"a":1',
      '[1,]',
      "{'a':1}",
      'undefined',
      '{"a":1}{"a":1}',
      '\u0000',
    ]) {
      const reply = await prober.refused(
        `${method} ${url} of ${text}`,
        [400],
        say('application/json', text),
      )
      expect(reply.body.error?.code).toBe('COULD_NOT_PARSE_BODY')
    }
    const deep = `${'{"a":'.repeat(500)}1${'}'.repeat(500)}`
    await prober.refused(`${method} ${url} deep`, [400], say('application/json', deep))
    await prober.refused(
      `${method} ${url} with a prototype`,
      [400],
      say('application/json', '{"__proto__":{"isAdmin":true}}'),
    )
    if (body?.isRequired === true) {
      await prober.refused(`${method} ${url} of nothing`, [400], say('application/json', ' '))
    }
  })

  when(body !== null)(
    'refuses a body that violates its schema, but does not refuse a value at a limit for its size',
    async () => {
      const url = await goodUrl(operation)
      const { schema, isRequired } = body as { schema: Item; isRequired: boolean }
      const valid = await maker.body(operation, 'minimal')
      if (!typesOf(schema).has('object')) {
        await prober.refused(`${method} ${url} of an object`, [400], () =>
          prober.ask(method, url, {}),
        )
        return
      }
      for (const { why, body: bad, field, is } of bodyCases(schema, valid as JsonObject)) {
        // If no body is required, `null` counts as an absent body.
        if (bad === null && !isRequired) continue
        const said = `${method} ${url}: ${field} ${why}`
        // Sends the value as JSON, also if it is a string or null.
        const asking = () => prober.ask(method, url, JSON.stringify(bad))
        if (is === 'beyond') {
          const reply = await prober.refused(said, [400], asking)
          expect(reply.body.error?.cause?.['field'], `${said}: ${reply.text}`).toBe(field)
        } else {
          const reply = await asking()
          expect(reply.status, `${said}: ${reply.text}`).toBeLessThan(500)
          const reason = String(reply.body.error?.cause?.['reason'] ?? '')
          if (reply.body.error?.cause?.['field'] === field) {
            expect(reason, said).not.toMatch(/should (be at|have at|be less|be greater)/)
          }
        }
      }
    },
  )

  const entity = entityAt(collectionOf(operation.path))
  const writes = body !== null && entity !== undefined && isOfKind(operation)

  when(writes)(
    'accepts a body with only the required fields, and a body with all fields',
    async () => {
      for (const extent of ['minimal', 'full'] as const) {
        const valid = await maker.body(operation, extent)
        if (method === 'POST') await maker.create(operation, valid)
        else {
          const reply = await prober.ask(method, await goodUrl(operation), valid)
          expect(reply.status, `${JSON.stringify(valid)}: ${reply.text}`).toBe(200)
        }
      }
    },
  )

  when(writes)('refuses a body that references a record that does not exist', async () => {
    for (const [name, value] of danglingMembers(entity as Entity, method, body?.schema ?? {})) {
      const valid = (await maker.body(operation, 'minimal')) as JsonObject
      const url = await goodUrl(operation)
      await prober.refused(`${method} ${url} with an unknown ${name}`, [400, 404], () =>
        prober.ask(method, url, { ...valid, [name]: value }),
      )
    }
  })

  when(writes)('refuses a second record with the same value of a unique field', async () => {
    for (const [name, field] of Object.entries((entity as Entity).fields)) {
      if (field.unique === null || propertiesOf(body?.schema ?? {})[name] === undefined) continue
      const value = uniqueText(name)
      const create = operations.find(
        ({ api, method: verb, path }) =>
          api === 'management' && verb === 'POST' && path === collectionOf(operation.path),
      )
      if (create === undefined) continue
      const first = (await maker.body(create, 'minimal')) as JsonObject
      await maker.create(create, { ...first, [name]: value })
      const url = await goodUrl(operation)
      const second = (await maker.body(operation, 'minimal')) as JsonObject
      const reply = await prober.refused(`${method} ${url} with a second ${name}`, [400], () =>
        prober.ask(method, url, { ...second, [name]: value }),
      )
      expect(reply.body.error?.cause).toMatchObject({ field: name })
    }
  })

  when(operation.isList)(
    'refuses invalid list queries, and accepts unusual valid ones',
    async () => {
      const url = await goodUrl(operation)
      const base = url.includes('?') ? `${url}&` : `${url}?`
      for (const { query, codes } of badListQueries) {
        const statuses = url.includes(NOWHERE) ? [400, 404] : [400]
        const reply = await prober.refused(`${base}${query}`.slice(0, 200), statuses, () =>
          prober.ask('GET', `${base}${query}`),
        )
        if (reply.status === 404) continue
        expect(codes, `${query}: ${reply.text}`).toContain(reply.body.error?.code)
      }
      for (const query of goodListQueries) {
        const reply = await prober.ask('GET', `${base}${query}`)
        expect([200, 404], `${base}${query}: ${reply.text}`).toContain(reply.status)
      }
    },
  )

  when(operation.query.length > 0)(
    'refuses missing, mistyped and oversized query parameters',
    async () => {
      const url = urlOf(operation, await maker.ids(operation))
      for (const { name, schema, required } of operation.query) {
        const payload = body === null ? undefined : await maker.body(operation, 'minimal')
        const refuse = (query: string) =>
          prober.refused(`${method} ${url}?${query}`, [400], () =>
            prober.ask(method, `${url}?${query}`, payload),
          )
        if (Array.isArray(schema['enum'])) await refuse(`${name}=none-of-these`)
        if (schema['type'] === 'integer') await refuse(`${name}=many`)
        if (required) await refuse('')
        if (schema['type'] === 'array') await refuse(`${name}=x&`.repeat(5000))
      }
    },
  )

  test('declares the statuses 400, 413, 415 and 429 if it has a body, and 401 unless it is public', () => {
    expect(statuses.every((status) => status >= 200 && status < 600)).toBe(true)
    if (body !== null) expect(statuses).toEqual(expect.arrayContaining([400, 413, 415, 429]))
    if (!operation.isPublic) expect(statuses).toContain(401)
  })
})

test('a path has no operation for an HTTP method that its document does not declare', async () => {
  const paths = new Map<string, ServedOperation[]>()
  for (const one of operations) {
    const key = `${one.api} ${one.path}`
    paths.set(key, [...(paths.get(key) ?? []), one])
  }
  for (const served of paths.values()) {
    const [first] = served
    if (first === undefined) continue
    const url = urlOf(
      first,
      Object.fromEntries(pathParameters(first).map((name) => [name, NOWHERE])),
    )
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
      if (served.some((one) => one.method === method)) continue
      await prober.refused(`${method} ${url}`, [405], () => prober.ask(method, url))
    }
  }
  await prober.refused('an unknown path', [404], () =>
    prober.ask('GET', `${bases.management}/nothing-here`),
  )
})

function isOfKind({ path, method }: ServedOperation): boolean {
  const collection = collectionOf(path)
  return (path === collection || path === `${collection}/{id}`) && method !== 'DELETE'
}

/** Members that refer to other records, each with a value that refers to none. */
function danglingMembers(entity: Entity, method: string, schema: Item): [string, Json][] {
  return Object.entries(entity.fields).flatMap(([name, field]): [string, Json][] => {
    const member = propertiesOf(schema)[name]
    const isKept = field.settable === 'create' && method !== 'POST'
    if (isKept || member === undefined || !entitiesByName.has(field.reference?.to ?? '')) return []
    const value = danglingValue(field, member)
    return value === null ? [] : [[name, value]]
  })
}

function danglingValue(field: Field, schema: Item): Json {
  switch (field.kind) {
    case 'reference':
      return NOWHERE
    case 'references':
      return [NOWHERE]
    case 'roleList':
      return [`@${NOWHERE}`]
    case 'map':
      return { [NOWHERE]: sample((schema['additionalProperties'] ?? {}) as Item, false) }
    default:
      return null
  }
}
