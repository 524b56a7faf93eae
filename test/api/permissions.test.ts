import { describe, expect, test } from 'vitest'
import { create, toBinary } from '@bufbuild/protobuf'
import {
  CommandKind,
  EntityWriteSchema,
  IdentityDisableSchema,
} from '../../proto/gen/command_pb.ts'
import { grantablePermissions } from '../../src/lib/permissions.ts'
import { canonicalJson } from '../../src/lib/text/canonical-json.ts'
import { CallerOf, client, fabric, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { neededFor } from './support/matrix.ts'
import { commandData } from '../support/commands.ts'

const { controller, root } = await controllerForFile()
const other = new CallerOf(controller)

const identities = `${management}/identities`
const utf8 = new TextEncoder()
let serial = 0

/** A log entry as another controller would propose it, without a caller. */
function patched(
  entity: string,
  id: string,
  fields: Readonly<Record<string, unknown>>,
): Uint8Array {
  const json = utf8.encode(canonicalJson(fields))
  const payload = toBinary(EntityWriteSchema, create(EntityWriteSchema, { entity, id, json }))
  return commandData(CommandKind.ENTITY_PATCH, payload)
}

let aliceSession: string | null = null

/**
 * The identity Alice with exactly these permissions, each time in a new session, because one
 * identity may have only a limited number of sessions.
 */
function given(...permissions: readonly string[]): CallerOf {
  controller.cluster.apply(patched('identity', 'alice-id', { permissions }))
  const isOpen = aliceSession !== null && controller.state.get('apiSession', aliceSession)
  if (!isOpen) {
    other.token = controller.openSession('alice-id')
    aliceSession = other.token.split('.')[1] ?? null
  }
  return other
}

async function newIdentity(fields: object = {}): Promise<string> {
  serial += 1
  const body = { name: `subject ${serial}`, type: 'User', isAdmin: false, ...fields }
  const reply = await root.call('POST', identities, body)
  expect(reply.status, reply.text).toBe(201)
  return (reply.body.data as { id: string }).id
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>
}
interface Described {
  readonly operationId: string
  readonly 'x-permission': string
}

async function operationsOf(
  base: string,
): Promise<(Described & { method: string; path: string })[]> {
  const answer = await controller.app.inject(`${base}/openapi.json`)
  const { paths } = JSON.parse(answer.payload) as Document
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, described]) => ({ ...described, method, path })),
  )
}

/**
 * A stream of events has no end, so the URL makes the controller refuse the request after it has
 * admitted the caller.
 */
function urlOf(base: string, path: string): string {
  const query = path === '/events' ? '?entityTypes=nobody' : ''
  return base + path.replace(/\{[A-Za-z]+\}/g, 'nobody') + query
}

/**
 * Whether the caller passes the permission check. The requests have no body and no existing record,
 * so an admitted caller gets another refusal, or reads a list.
 */
async function isAdmitted(caller: CallerOf, base: string, method: string, path: string) {
  const reply = await caller.call(method.toUpperCase(), urlOf(base, path))
  return reply.status !== 401
}

describe('every operation of the management API', () => {
  test('requires the same permission as in OpenZiti', async () => {
    const found = await operationsOf(management)
    expect(found.length).toBeGreaterThan(60)
    for (const { method, path, ...described } of found) {
      expect(described['x-permission'], `${method} ${path}`).toBe(neededFor(method, path))
    }
  })

  test('admits callers with the permission for its kind of record or its action, admits admin_readonly to reads, and refuses all others', async () => {
    const all = grantablePermissions.filter((one) => one !== 'admin_readonly')
    for (const { method, path, ...described } of await operationsOf(management)) {
      const needed = described['x-permission']
      const isOpen = ['public', 'partial', 'session'].includes(needed)
      const kind = needed.split('.')[0] ?? ''
      const isGrantable = grantablePermissions.includes(needed)
      const cases: readonly (readonly [string, readonly string[], boolean])[] = [
        ['nothing', [], isOpen],
        ['admin_readonly', ['admin_readonly'], isOpen || needed.endsWith('.read')],
        ['the kind', [kind], isOpen || isGrantable],
        ['the action', [needed], isOpen || isGrantable],
        [
          'another action',
          all.filter((one) => one.startsWith(`${kind}.`) && one !== needed),
          isOpen,
        ],
        ['every other kind', all.filter((one) => one.split('.')[0] !== kind), isOpen],
      ]
      for (const [name, permissions, expected] of cases) {
        const caller = given(...permissions.filter((one) => grantablePermissions.includes(one)))
        const admitted = await isAdmitted(caller, management, method, path)
        expect(admitted, `${method} ${path} with ${name}`).toBe(expected)
      }
    }
  })

  test('admits an administrator', async () => {
    for (const { method, path } of await operationsOf(management)) {
      root.token = controller.openSession('admin-id')
      expect(await isAdmitted(root, management, method, path), `${method} ${path}`).toBe(true)
    }
    root.token = controller.openSession('admin-id')
  })
})

describe('the client API and the fabric API', () => {
  test('admit no caller because of a granted permission, except for ops on the fabric API', async () => {
    for (const base of [client, fabric]) {
      for (const { method, path, ...described } of await operationsOf(base)) {
        const needed = described['x-permission']
        const isOpen = ['public', 'partial', 'session'].includes(needed)
        const admitted = await isAdmitted(given(...grantablePermissions), base, method, path)
        const isOps = base === fabric && needed.startsWith('ops.')
        expect(admitted, `${method} ${base}${path}`).toBe(isOpen || isOps)
      }
    }
  })
})

describe('a non-administrator with identity permissions', () => {
  const isDenied = async (method: string, url: string, body?: object): Promise<void> => {
    const reply = await other.call(method, url, body)
    expect(reply.status, `${method} ${url} ${reply.text}`).toBe(401)
    expect(reply.body.error?.cause?.['message']).toMatch(/only an administrator/)
    expect(reply.headers['www-authenticate']).toBeUndefined()
  }

  test('cannot create administrators or grant permissions', async () => {
    given('identity')
    const body = { name: 'of alice', type: 'User', isAdmin: false }
    await isDenied('POST', identities, { ...body, isAdmin: true })
    await isDenied('POST', identities, { ...body, permissions: ['identity'] })
    expect((await other.call('POST', identities, { ...body, permissions: [] })).status).toBe(201)
    const id = await newIdentity()
    await isDenied('PUT', `${identities}/${id}`, body)
    await isDenied('PATCH', `${identities}/${id}`, { isAdmin: false })
    await isDenied('PATCH', `${identities}/${id}`, { permissions: [] })
    expect((await other.call('PATCH', `${identities}/${id}`, { isAdmin: null })).status).toBe(200)
    expect((await other.call('PATCH', `${identities}/${id}`, { name: 'renamed' })).status).toBe(200)
    expect((await other.call('DELETE', `${identities}/${id}`)).status).toBe(200)
  })

  test('can read an administrator, but not change it', async () => {
    given('identity')
    const id = await newIdentity({ isAdmin: true })
    const url = `${identities}/${id}`
    expect((await other.get(url)).status).toBe(200)
    await isDenied('PATCH', url, { name: 'mine' })
    await isDenied('DELETE', url)
    await isDenied('POST', `${url}/disable`, { durationMinutes: 5 })
    await isDenied('POST', `${url}/enable`)
    await isDenied('POST', `${url}/service-configs`, [])
    await isDenied('DELETE', `${url}/service-configs`, [])
  })

  test('is refused when the log entry is applied if the target identity has become an administrator in the meantime', async () => {
    given('identity')
    const id = await newIdentity()
    const { cluster } = controller
    const propose = cluster.propose.bind(cluster)
    cluster.propose = (input) => {
      cluster.propose = propose
      cluster.apply(patched('identity', id, { isAdmin: true }))
      return propose(input)
    }
    await isDenied('DELETE', `${identities}/${id}`)
    expect((await root.get(`${identities}/${id}`)).status).toBe(200)
  })
})

describe('a change of the caller’s rights between the permission check and the application of the log entry', () => {
  /** Puts another entry into the log before the next one. */
  function before(data: () => void): void {
    const { cluster } = controller
    const propose = cluster.propose.bind(cluster)
    cluster.propose = (input) => {
      cluster.propose = propose
      data()
      return propose(input)
    }
  }

  test('causes the refusal of the request if it revoked the permission of the caller', async () => {
    const id = await newIdentity()
    given('identity.update')
    before(() => controller.cluster.apply(patched('identity', 'alice-id', { permissions: [] })))
    const reply = await other.call('PATCH', `${identities}/${id}`, { name: 'too late' })
    expect(reply.status).toBe(401)
    expect((await root.get(`${identities}/${id}`)).text).not.toContain('too late')
  })

  test('causes the refusal of the request if the caller is no longer an administrator or its session has ended', async () => {
    const adminId = await newIdentity({ isAdmin: true })
    const caller = new CallerOf(controller)
    const id = await newIdentity()
    caller.token = controller.openSession(adminId)
    before(() => controller.cluster.apply(patched('identity', adminId, { isAdmin: false })))
    const url = `${identities}/${id}`
    expect((await caller.call('PATCH', url, { name: 'too late' })).status).toBe(401)
    controller.cluster.apply(patched('identity', adminId, { isAdmin: true }))
    const disable = toBinary(IdentityDisableSchema, create(IdentityDisableSchema, { id: adminId }))
    before(() => controller.cluster.apply(commandData(CommandKind.IDENTITY_DISABLE, disable)))
    expect((await caller.call('PATCH', url, { name: 'too late' })).status).toBe(401)
    expect((await root.get(url)).text).not.toContain('too late')
  })
})
