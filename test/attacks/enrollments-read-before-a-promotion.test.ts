import { describe, expect, test } from 'vitest'
import { CommandKind } from '../../proto/gen/command_pb.ts'
import { type CallerOf, management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { made, newIdentity, shown } from '../api/support/network.ts'
import { convertToNewCluster } from '../../src/fsm/restored-state.ts'
import { sharedSecretNames } from '../../src/lib/shared-secrets.ts'
import { identity, type LogWriter } from '../fsm/support/log.ts'
import { contentOf, restorableState, Restore } from '../fsm/support/restoring.ts'

// The attack: an attacker with few permissions reads the enrollment token of an ordinary identity,
// waits until the identity gets more permissions, and enrolls as the identity.

const { controller, root, sessionOf } = await controllerForFile()
const identities = `${management}/identities`
const enrollments = `${management}/enrollments`
const expiresAt = new Date(controller.clock.nowMs() + 3_600_000).toISOString()

let serial = 0

async function attackerWith(...permissions: readonly string[]): Promise<CallerOf> {
  serial += 1
  const id = await newIdentity(root, `attacker ${serial}`, { permissions })
  return sessionOf(id)
}

/** The enrollment tokens of an ordinary identity in its detail and in its enrollments. */
async function tokensRead(attacker: CallerOf, id: string): Promise<string[]> {
  const { enrollment } = await shown(attacker, `${identities}/${id}`)
  return Object.values(enrollment as Record<string, { token: string }>).map(({ token }) => token)
}

function openIds(identityId: string): string[] {
  return [...controller.state.table('enrollment').indexes.ids('identityId', identityId)]
}

const plain = { type: 'User', isAdmin: false }
const rights: readonly (readonly [string, object])[] = [
  ['PATCH', { isAdmin: true }],
  ['PATCH', { permissions: ['identity.read', 'service'] }],
  ['PUT', { ...plain, isAdmin: true }],
  ['PUT', { ...plain, permissions: ['ca'] }],
]

describe('An enrollment token that was read before its identity gained rights', () => {
  test.each(rights)(
    'is invalid after a %s with %j gives the identity rights',
    async (method, body) => {
      const attacker = await attackerWith('identity.read')
      const name = `victim ${method} ${JSON.stringify(body)}`
      const id = await newIdentity(root, name, { enrollment: { ott: true } })
      const updb = { identityId: id, method: 'updb', username: `victim ${serial}`, expiresAt }
      await made(root, enrollments, updb)
      const tokens = await tokensRead(attacker, id)
      expect(tokens).toHaveLength(2)
      const change = await root.call(method, `${identities}/${id}`, { name, ...body })
      expect(change.status, change.text).toBe(200)
      for (const token of tokens) {
        const reply = await attacker.call('POST', `/edge/client/v1/enroll?token=${token}`, {
          password: 'of the attacker',
        })
        expect(reply.body.error?.code, reply.text).toBe('INVALID_ENROLLMENT_TOKEN')
      }
      expect(openIds(id)).toEqual([])
    },
  )

  test('is invalid after its identity gains an additional permission', async () => {
    const attacker = await attackerWith('enrollment.create', 'service.read')
    const id = await newIdentity(root, 'assistant', { permissions: ['service.read'] })
    await made(attacker, enrollments, { identityId: id, method: 'ott', expiresAt })
    const body = { permissions: ['service.read', 'service.update'] }
    expect((await root.call('PATCH', `${identities}/${id}`, body)).status).toBe(200)
    expect(openIds(id)).toEqual([])
  })
})

describe('An open enrollment', () => {
  test('stays valid if its identity had rights when the enrollment was created, whether together with the identity or later', async () => {
    const enrollment = { ott: true }
    const id = await newIdentity(root, 'new administrator', { isAdmin: true, enrollment })
    const updb = { identityId: id, method: 'updb', username: 'administrator', expiresAt }
    await made(root, enrollments, updb)
    const change = { tags: { team: 'network' }, permissions: ['ca'] }
    expect((await root.call('PATCH', `${identities}/${id}`, change)).status).toBe(200)
    expect(openIds(id)).toHaveLength(2)
    expect((await root.call('DELETE', `${identities}/${id}`)).status).toBe(200)
  })

  test('stays valid while its identity keeps or loses rights', async () => {
    const permissions = ['service', 'ca']
    const id = await newIdentity(root, 'operator', { permissions, enrollment: { ott: true } })
    const change = { permissions: ['service.read'] }
    expect((await root.call('PATCH', `${identities}/${id}`, change)).status).toBe(200)
    expect(openIds(id)).toHaveLength(1)
    expect((await root.call('DELETE', `${identities}/${id}`)).status).toBe(200)
  })
})

describe.each(['edge-routers', 'transit-routers'])(
  'The enrollment of a router in the collection %s',
  (collection) => {
    const routers = `${management}/${collection}`
    const field = collection === 'edge-routers' ? 'edgeRouterId' : 'transitRouterId'
    const names = { allowedNames: ['ctrl1.example'] }

    function openOf(routerId: string): string[] {
      return [...controller.state.table('enrollment').indexes.ids(field, routerId)]
    }

    test('is deleted when the router is allowed a host name, because callers who are not administrators may have read its token', async () => {
      const attacker = await attackerWith('router.read')
      const id = await made(root, routers, { name: `reader of ${collection}` })
      expect(await shown(attacker, `${routers}/${id}`)).toHaveProperty('enrollmentToken')
      expect((await root.call('PATCH', `${routers}/${id}`, names)).status).toBe(200)
      expect(openOf(id)).toEqual([])
    })

    test('is shown only to administrators if the router is allowed a host name', async () => {
      const attacker = await attackerWith('router.read', 'enrollment.read')
      const id = await made(root, routers, { name: `shown ${collection}`, ...names })
      const { enrollmentToken } = await shown(root, `${routers}/${id}`)
      for (const [url, status] of [
        [`${routers}/${id}`, 200],
        [`${routers}?limit=500`, 200],
        [`${enrollments}?limit=500`, 200],
        [`${enrollments}/${openOf(id)[0]}`, 401],
      ] as const) {
        const reply = await attacker.get(url)
        expect(reply.status, url).toBe(status)
        expect(reply.text, url).not.toContain(enrollmentToken)
      }
      expect(openOf(id)).toHaveLength(1)
    })

    test('can be refreshed or created again only by administrators if the router is allowed a host name', async () => {
      const attacker = await attackerWith('router', 'enrollment')
      const id = await made(root, routers, { name: `made ${collection}`, ...names })
      const [enrollmentId = ''] = openOf(id)
      const refresh = `${enrollments}/${enrollmentId}/refresh`
      const refreshed = await attacker.call('POST', refresh, { expiresAt })
      expect([refreshed.status, refreshed.body.error?.code]).toEqual([401, 'UNAUTHORIZED'])
      if (collection === 'edge-routers') {
        const again = await attacker.call('POST', `${routers}/${id}/re-enroll`)
        expect([again.status, again.body.error?.code]).toEqual([401, 'UNAUTHORIZED'])
      }
      expect(openOf(id)).toEqual([enrollmentId])
    })
  },
)

test('the audit log names each enrollment that was deleted because its identity gained rights', async () => {
  const id = await newIdentity(root, 'promoted', { enrollment: { ott: true } })
  const [enrollmentId = ''] = openIds(id)
  await root.call('PATCH', `${identities}/${id}`, { isAdmin: true })
  const filter = encodeURIComponent(`entityId = "${id}" and action = "patch"`)
  const { body } = await root.get(`/fabric/v1/audit?filter=${filter}`)
  expect(body.data).toMatchObject([
    { fields: ['isAdmin'], also: [`delete enrollment ${enrollmentId}`] },
  ])
})

describe('A restored backup', () => {
  const open = { identityId: 'ann', method: 'ott', token: 'of ann', expiresAt: 4_000_000_000_000 }
  const administrator = { ...identity('ann'), isAdmin: true }

  function withAnn(fields: typeof administrator) {
    const formed = restorableState()
    formed.log.create('identity', 'ann', fields)
    formed.log.raw(CommandKind.ENTITY_CREATE, 'enrollment', 'e1', open)
    return formed
  }

  function restoredInto(log: LogWriter): void {
    const restore = new Restore(log, contentOf(withAnn(administrator).state))
    restore.stage()
    expect(restore.end()).toEqual({ ok: true, id: 'one' })
  }

  test('gives no rights to the holder of an enrollment token that was readable after the backup', () => {
    const { state, log } = withAnn(administrator)
    log.patch('identity', 'ann', { isAdmin: false })
    restoredInto(log)
    expect(state.get('identity', 'ann')).toMatchObject({ isAdmin: true })
    expect([...state.table('enrollment').ids]).toEqual([])
  })

  test('gives no host names to the holder of a router’s enrollment token that was readable after the backup', () => {
    const withRouter = () => {
      const formed = restorableState()
      formed.log.create('edgeRouter', 'r1', { name: 'r1', allowedNames: ['ctrl1.example'] })
      const ofRouter = { edgeRouterId: 'r1', method: 'erott', token: 'of r1' }
      const fields = { ...ofRouter, expiresAt: open.expiresAt }
      formed.log.raw(CommandKind.ENTITY_CREATE, 'enrollment', 'e1', fields)
      return formed
    }
    const { state, log } = withRouter()
    log.patch('edgeRouter', 'r1', { allowedNames: [] })
    expect([...state.table('enrollment').ids]).toEqual(['e1'])
    const restore = new Restore(log, contentOf(withRouter().state))
    restore.stage()
    expect(restore.end()).toEqual({ ok: true, id: 'one' })
    expect(state.get('router', 'r1')).toMatchObject({ allowedNames: ['ctrl1.example'] })
    expect([...state.table('enrollment').ids]).toEqual([])
  })

  test('does not contain an enrollment token that a refresh has replaced since the backup', () => {
    const { state, log } = withAnn(administrator)
    log.raw(CommandKind.ENTITY_PATCH, 'enrollment', 'e1', { token: 'refreshed' })
    restoredInto(log)
    expect([...state.table('enrollment').ids]).toEqual([])
  })

  test('contains the enrollment token of an identity that has the same rights now as in the backup', () => {
    const { state, log } = withAnn(administrator)
    restoredInto(log)
    expect([...state.table('enrollment').ids]).toEqual(['e1'])
  })

  test('contains no open enrollments of identities with rights if it is restored as a new cluster', () => {
    const { state, log } = withAnn(administrator)
    log.create('identity', 'bob', identity('bob'))
    const ofBob = { ...open, identityId: 'bob', token: 'of bob' }
    log.raw(CommandKind.ENTITY_CREATE, 'enrollment', 'e2', ofBob)
    convertToNewCluster(state, {
      clusterId: 'another',
      configuration: new Uint8Array(),
      admission: { id: 'ctrl1' },
      secrets: Object.fromEntries(sharedSecretNames.map((name) => [name, []])) as never,
      timeMs: log.timeMs,
    })
    expect([...state.table('enrollment').ids]).toEqual(['e2'])
  })
})
