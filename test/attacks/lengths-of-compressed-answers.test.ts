import { describe, expect, test } from 'vitest'
import {
  ResponseCompression,
  isKnownSecretName,
} from '../../src/api/http/responses/response-compression.ts'
import { management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { makeManyIdentities } from '../api/support/many.ts'
import type { JsonObject } from '../../src/lib/text/canonical-json.ts'
import { allOperations } from '../../src/api/operations.ts'
import type { ApiDeps } from '../../src/api/api-deps.ts'
import { createServices } from '../../src/api/services.ts'

// The attack: an attacker chooses a text in a list that an administrator's console reads again and
// again, and sees the length of each response on the network. If the list were compressed together
// with an enrollment token, the response would be shorter whenever the text is part of the token,
// so that the attacker could guess it character by character.

const { controller, root } = await controllerForFile()
makeManyIdentities(controller, 30)

const codingOf = async (url: string): Promise<unknown> => {
  const headers = {
    'net-session': controller.openSession('admin-id'),
    'accept-encoding': 'gzip, br',
  }
  const answer = await controller.app.inject({ method: 'GET', url, headers })
  expect(answer.statusCode).toBe(200)
  expect(answer.rawPayload.length).toBeGreaterThan(0)
  return answer.headers['content-encoding']
}

test('a list is not compressed while one of its rows contains the token of an identity’s enrollment', async () => {
  const url = `${management}/identities?limit=100`
  expect(await codingOf(`${url}&filter=${encodeURIComponent('name contains "many"')}`)).toBe('br')
  const made = await root.call('POST', `${management}/identities`, {
    name: 'many, not enrolled',
    type: 'User',
    isAdmin: false,
    enrollment: { ott: true },
  })
  expect(made.status).toBe(201)
  expect(await codingOf(url)).toBeUndefined()
  expect(await codingOf(`${management}/enrollments`)).toBeUndefined()
})

test('a list is not compressed while one of its rows contains the token of a router’s enrollment', async () => {
  for (let at = 0; at < 8; at += 1) {
    const router = { name: `router ${at}`, isTunnelerEnabled: false }
    expect((await root.call('POST', `${management}/edge-routers`, router)).status).toBe(201)
  }
  expect(await codingOf(`${management}/edge-routers?limit=100`)).toBeUndefined()
})

describe('the operations whose responses may be compressed', () => {
  const deps: ApiDeps = controller.parts
  const operations = allOperations({ ...deps, ...createServices(deps) }).filter(
    ({ isCompressible }) => isCompressible === true,
  )

  test('are all read operations', () => {
    expect(operations.length).toBeGreaterThan(40)
    expect(operations.filter(({ method }) => method !== 'GET')).toEqual([])
  })

  test('contain secrets only in fields that prevent compression', () => {
    const unknown = operations.flatMap(({ operationId, response }) =>
      secretNames(response.schema.schema).map((name) => `${operationId}: ${name}`),
    )
    expect(unknown).toEqual([])
  })
})

test('one client cannot make a controller compress many lists at a time', () => {
  const compression = new ResponseCompression({
    compressedBytesMin: 1,
    compressedBytesMax: 1_000_000,
    compressedAtOnceBytesMax: 0,
    compressionsMax: 4,
  })
  let waiting = 0
  const sentAsTheyAre: unknown[] = []
  for (let at = 0; at < 10; at += 1) {
    compression.compress(
      'one client',
      'x'.repeat(100_000),
      100_000,
      'gzip',
      () => (waiting += 1),
      (compressed) => {
        if (compressed === null) sentAsTheyAre.push(at)
      },
    )
  }
  expect([waiting, sentAsTheyAre.length]).toEqual([3, 7])
})

/** Text members whose name suggests a secret and that the compression does not exclude. */
function secretNames(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return []
  if (Array.isArray(schema)) return schema.flatMap((part) => secretNames(part))
  const { properties, ...others } = schema as JsonObject
  const named = Object.entries((properties ?? {}) as JsonObject).flatMap(([name, of]) => {
    const isText = (of as JsonObject)['type'] === undefined || canBeText((of as JsonObject)['type'])
    const isSecret = /token|jwt|secret|password|recovery|privateKey|seed/i.test(name)
    const isKnown = isKnownSecretName(name) || harmless.has(name)
    return [...(isText && isSecret && !isKnown ? [name] : []), ...secretNames(of)]
  })
  return [...named, ...Object.values(others).flatMap((part) => secretNames(part))]
}

function canBeText(type: unknown): boolean {
  return type === 'string' || (Array.isArray(type) && type.includes('string'))
}

/** Names with such a word that do not contain a secret. */
const harmless: ReadonlySet<string> = new Set(['requireExtJwtSigner'])
