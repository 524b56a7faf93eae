import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { allOperations } from '../../src/api/operations.ts'
import type { Operation } from '../../src/api/http/operation.ts'
import { createServices } from '../../src/api/services.ts'
import { adminSocketOnlyOperations } from '../../src/auth/principal/host-user.ts'
import { createApi } from '../../src/api/server.ts'
import { createSystemActor } from '../../src/ports/actor.ts'
import { Problem } from '../../src/lib/problems.ts'
import { CallerOf, fabric, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { bases } from '../support/served-answers.ts'

// Goal: through the admin socket, the user of the host may call every operation that needs no
// session, and no other caller gains rights.

const { controller, root } = await controllerForFile()
const operator = new CallerOf(controller)
operator.isAtSocket = true
const operations = allOperations({ ...controller.parts, ...createServices(controller.parts) })

beforeEach(() => {
  root.token = controller.openSession('admin-id')
})
afterEach(() => {
  controller.refusal = null
})

interface Asked {
  readonly url: string
  readonly operation: Operation
}

/** Every read operation whose path and query need no value. */
const reads: Asked[] = operations.flatMap((operation) => {
  const { method, path, apis, query = [] } = operation
  // Omitted because a stream does not end; test/cli/admin-socket.test.ts reads it over a real
  // socket.
  if (path === '/events') return []
  if (method !== 'GET' || path.includes('{') || query.some(({ isRequired }) => isRequired))
    return []
  return apis.flatMap((api) =>
    api === 'host' || api === 'oidc' ? [] : [{ url: bases[api] + path, operation }],
  )
})

test.each(reads)(
  'GET $url succeeds at the admin socket, or is refused because the operation needs a session or a parameter',
  async (asked) => {
    const { url, operation } = asked
    const isAboutSession = ['session', 'partial'].includes(operation.permission)
    const reply = await operator.get(url, { accept: '*/*' })
    if (isAboutSession) {
      expect([reply.status, reply.body.error?.code]).toEqual([400, 'INVALID_BACKING_TOKEN_TYPE'])
    } else {
      expect([200, 400], reply.text).toContain(reply.status)
      if (reply.status === 400) expect(reply.text).toContain('required')
    }
  },
)

test('the health operation at the admin socket returns the details of the node, which a caller without a session does not see', async () => {
  const { payload } = await controller.socket.inject('/health-checks')
  expect(JSON.parse(payload)).toHaveProperty('data.node')
  const { payload: bare } = await controller.app.inject('/health-checks')
  expect(JSON.parse(bare)).not.toHaveProperty('data.node')
})

test('a write at the admin socket is attributed to the host user', async () => {
  const body = { name: 'by the host', encryptionRequired: true }
  const made = await operator.call('POST', `${management}/services`, body)
  expect(made.status, made.text).toBe(201)
  expect(made.headers['expires-at']).toBeUndefined()
  const { id } = made.body.data as { readonly id: string }
  const filter = encodeURIComponent(`entityId = "${id}"`)
  const rows = (await root.get(`${fabric}/audit?filter=${filter}`)).body.data
  expect(rows).toMatchObject([{ actor: { name: 'uid:1000 (op)' }, session: '' }])
})

describe('the operations in the list adminSocketOnlyOperations', () => {
  const only = operations.filter(({ operationId }) =>
    Object.hasOwn(adminSocketOnlyOperations, operationId),
  )

  test('exist, and declare the status 403', () => {
    expect(only.map(({ operationId }) => operationId).sort()).toEqual(
      Object.keys(adminSocketOnlyOperations).sort(),
    )
    expect(only.every(({ refusals }) => refusals?.includes(403))).toBe(true)
  })

  test.each(only)(
    'are refused to an administrator on a listener other than the admin socket: $operationId',
    async (operation) => {
      const asked = controller.pki.asked.length + controller.backups.asked.length
      const records = [...controller.state.storedRecords()]
      const reply = await root.call(operation.method, `${fabric}${operation.path}`, {})
      expect([reply.status, reply.body.error?.code]).toEqual([403, 'ADMIN_SOCKET_ONLY'])
      expect(controller.pki.asked.length + controller.backups.asked.length).toBe(asked)
      expect([...controller.state.storedRecords()]).toEqual(records)
    },
  )
})

test('an administrator can list and renew the certificates without the admin socket; a renewal is attributed to the administrator’s ID, and a reload at the admin socket to the name of the host user', async () => {
  expect((await root.get(`${fabric}/pki/certificates`)).status).toBe(200)
  expect((await root.call('POST', `${fabric}/pki/renew`)).status).toBe(200)
  expect((await operator.call('POST', `${fabric}/pki/reload`)).status).toBe(200)
  expect(controller.pki.asked.slice(-2)).toEqual([
    ['renew', 'admin-id'],
    ['reload', 'uid:1000 (op)'],
  ])
})

test('the admin socket sends a backup with the requested options; an administrator can list the scheduled backups', async () => {
  const body = { recipientPem: 'a key', hasSecrets: true, isStale: null }
  const reply = await operator.call('POST', `${fabric}/cluster/backup`, body)
  expect([reply.status, reply.text]).toEqual([200, 'the first half, the second half'])
  expect(controller.backups.asked.at(-1)).toEqual([
    { recipientPem: 'a key', hasSecrets: true, isPlaintext: false, isStale: false },
    'uid:1000 (op)',
  ])
  const listed = await root.get(`${fabric}/cluster/backups`)
  expect(listed.body.data).toEqual({
    isScheduled: true,
    backups: [{ name: 'a.backup', takenAtMs: 5 }],
  })
})

test('while the controller is in quarantine, only the host user can read the cluster status and transfer leadership', async () => {
  const nobody = new CallerOf(controller)
  for (const caller of [nobody, root, operator]) await caller.served('fabric')
  controller.refusal = 'NODE_QUARANTINED'
  expect((await operator.get(`${fabric}/cluster/status`)).status).toBe(200)
  const moved = { newLeaderId: 'ctrl2' }
  const path = `${fabric}/cluster/transfer-leadership`
  expect((await operator.call('POST', path, moved)).status).toBe(200)
  expect((await operator.get(`${management}/services`)).status).toBe(503)
  const transfers = [...controller.members.transfers]
  for (const caller of [root, nobody]) {
    expect((await caller.call('POST', path, moved)).status).toBe(503)
  }
  expect(controller.members.transfers).toEqual(transfers)
  expect((await root.get(`${fabric}/cluster/status`)).status).toBe(503)
  expect((await nobody.get(`${fabric}/cluster/status`)).status).toBe(503)
})

test('the admin socket returns the result of promoting a member even if the promotion takes longer than the handler timeout', async () => {
  const changed = Promise.withResolvers<undefined>()
  const slow = {
    ...controller.members,
    change: async (change: Parameters<typeof controller.members.plan>[0]) => {
      await changed.promise
      return await controller.members.plan(change)
    },
  }
  const limits = { ...controller.parts.limits, handlerTimeoutMs: 20 }
  const app = createApi({ ...controller.parts, limits, membership: slow as never }).listener({
    apis: ['fabric'],
    https: null,
    socketCaller: () => createSystemActor({ name: 'uid:0' }),
  })
  const url = `${fabric}/cluster/promote-member`
  const asked = app.inject({ method: 'POST', url, payload: { id: 'ctrl2' } })
  await new Promise((resolve) => setTimeout(resolve, 60))
  changed.resolve(undefined)
  expect((await asked).statusCode).toBe(200)
  await app.close()
})

test('the admin socket returns the status and error code with which the cluster refuses a request', async () => {
  controller.members.refusal = new Problem('MEMBERSHIP_BUSY')
  const reply = await operator.call('POST', `${fabric}/cluster/promote-member`, { id: 'ctrl2' })
  controller.members.refusal = null
  expect([reply.status, reply.body.error?.code]).toEqual([409, 'MEMBERSHIP_BUSY'])
})
