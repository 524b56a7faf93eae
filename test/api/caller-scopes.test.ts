import { describe, expect, test } from 'vitest'
import type { CallerCredentials } from '../../src/auth/principal/credentials.ts'
import { RequestContext } from '../../src/api/http/request-context.ts'
import type { Operation } from '../../src/api/http/operation.ts'
import { resourceOperations } from '../../src/api/records/resource-routes.ts'
import { createServices } from '../../src/api/services.ts'
import { authenticator } from '../../src/entities/kinds/authenticator.ts'
import { defineEntity, type Entity } from '../../src/entities/define-entity.ts'
import { idReferenceField } from '../../src/entities/fields.ts'
import { service } from '../../src/entities/kinds/service.ts'
import { requirePresent } from '../../src/lib/assert.ts'
import { client, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { made, newIdentity } from './support/network.ts'

const { controller, root, sessionOf } = await controllerForFile()
const { parts } = controller
const needs = { ...parts, ...createServices(parts) }
const read = { client: { list: 'session', detail: 'session' } } as const

/**
 * A second kind on the client API besides CallerCredentials; each caller sees only its own records.
 */
const own: Entity = {
  ...authenticator,
  operations: read,
  callerScope: { through: 'reference', by: 'identityId' },
}

function served(kind: Entity, shape: 'list' | 'detail'): Operation {
  const isWanted = ({ path }: Operation) => path.endsWith('{id}') === (shape === 'detail')
  return requirePresent(resourceOperations(needs, [kind]).find(isWanted), `its ${shape}`)
}

const credentials: CallerCredentials = {
  address: '10.0.0.1',
  source: '10.0.0.1',
  sessionToken: undefined,
  peerChain: () => null,
  bearers: () => [],
  hostUser: null,
}

/** Response of an operation of the client API to a caller. */
async function shownBy(operation: Operation, identityId: string, id = ''): Promise<unknown> {
  const { path } = operation
  const about = { operation, api: 'client', method: 'GET', path, accept: '' } as const
  const call = new RequestContext({ ...about, credentials, startedAtMs: 0 })
  const session = requirePresent(
    parts.state.findAll('apiSession', 'identityId', identityId)[0],
    'a session of the caller',
  )
  const identity = requirePresent(parts.state.get('identity', identityId), 'the caller')
  const isAdmin = identity['isAdmin'] === true
  const held = { session, identity, isAdmin, pendingFactors: [] }
  call.caller = { ...held, kind: 'session', address: credentials.address, permission: 'session' }
  call.params = { id }
  const { body } = await operation.handle(call, undefined)
  return (JSON.parse(Buffer.from(body as string).toString()) as { data: unknown }).data
}

const idsOf = (rows: unknown): string[] => (rows as { id: string }[]).map(({ id }) => id)

describe('a kind of record on the client API', () => {
  sessionOf('alice-id')

  test('shows each caller the records within the caller’s scope', async () => {
    const list = served(own, 'list')
    expect(idsOf(await shownBy(list, 'alice-id'))).toEqual(['alice-updb'])
    expect(idsOf(await shownBy(list, 'admin-id'))).toEqual(['admin-updb'])
    const detail = served(own, 'detail')
    expect(await shownBy(detail, 'alice-id', 'alice-updb')).toMatchObject({ id: 'alice-updb' })
    for (const [caller, id] of [
      ['alice-id', 'admin-updb'],
      ['admin-id', 'alice-updb'],
    ] as const) {
      await expect(shownBy(detail, caller, id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    }
  })

  test('shows no records to a caller whose scope is empty, even if the caller has services', async () => {
    const id = await newIdentity(root, 'with services', { roleAttributes: ['mine'] })
    await made(root, `${management}/services`, {
      name: 'mine',
      encryptionRequired: true,
      roleAttributes: ['mine'],
    })
    await made(root, `${management}/service-policies`, {
      name: 'mine',
      type: 'Dial',
      semantic: 'AnyOf',
      identityRoles: ['#mine'],
      serviceRoles: ['#mine'],
    })
    const caller = sessionOf(id)
    expect((await caller.get(`${client}/services`)).body.data).toHaveLength(1)
    expect(await shownBy(served(own, 'list'), id)).toEqual([])
  })

  test.each([
    ['no scope', { ...authenticator, operations: read }, /has a scope in its descriptor/],
    [
      'the scope of services',
      { ...authenticator, operations: read, callerScope: { through: 'access' } },
      /so no authenticator/,
    ],
    [
      'a scope by a field that names no identity',
      { ...own, callerScope: { through: 'reference', by: 'caId' } },
      /names an identity/,
    ],
    [
      'a scope by a field that is not a reference',
      { ...service, callerScope: { through: 'reference', by: 'name' } },
      /names an identity/,
    ],
  ] as const)(
    'prevents the start of the API if its definition has %s',
    (_what, kind: Entity, reason) => {
      expect(() => resourceOperations(needs, [kind])).toThrow(reason)
    },
  )

  test('causes a compile error if its definition has no scope', () => {
    const about = { name: 'thing', plural: 'things', symbols: [] } as const
    const fields = { identityId: idReferenceField('identity', 'cascade') }
    // @ts-expect-error: operations on the client API without a scope.
    expect(defineEntity({ ...about, fields, operations: read }).callerScope).toBe(null)
    const operations = { management: { list: 'admin' } } as const
    expect(defineEntity({ ...about, fields, operations }).callerScope).toBe(null)
    const callerScope = { through: 'reference', by: 'identityId' } as const
    const kind = defineEntity({ ...about, fields, operations: read, callerScope })
    expect(kind.callerScope).toEqual(callerScope)
  })
})
