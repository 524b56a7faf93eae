import { expect, test } from 'vitest'
import { type CallerOf, management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { formedState, policy as policyOf, service as wiki, startMs } from '../fsm/support/log.ts'
import { StateReader } from '../../src/fsm/state-reader.ts'
import { previewLimits } from '../../src/fsm/access/relation-change-finder.ts'

// The attack: a preview applies writes to a copy of the state, for callers that may only read. Its
// results and refusals could reveal records that they may not read, and a large preview could block
// the controller.
const { root, sessionOf } = await controllerForFile()

async function created(collection: string, body: object): Promise<string> {
  const reply = await root.call('POST', `${management}/${collection}`, body)
  expect(reply.status, reply.text).toBe(201)
  return (reply.body.data as { id: string }).id
}

let eves = 0

async function eve(...permissions: readonly string[]): Promise<CallerOf> {
  eves += 1
  const body = { name: `eve ${eves}`, type: 'User', isAdmin: false, permissions }
  return sessionOf(await created('identities', body))
}

const semantic = 'AnyOf'
const all = ['#all']
const router = await created('edge-routers', { name: 'router in the vault' })
const service = await created('services', { name: 'wiki', encryptionRequired: true })
const policy = await created('service-policies', {
  semantic,
  name: 'policy in the vault',
  type: 'Dial',
  identityRoles: all,
  serviceRoles: all,
})
const url = `${management}/access/preview`
const both = ['identity.read', 'service.read']
const gone = { action: 'delete', kind: 'servicePolicy', id: policy }

test('a caller can preview a change only if the caller may read the kind of the record and the kinds that the record references', async () => {
  const ask = async (permissions: readonly string[], change: object): Promise<number> =>
    (await (await eve(...permissions)).call('POST', url, { changes: [change] })).status
  expect(await ask(both, gone)).toBe(401)
  expect(await ask([...both, 'service-policy.read'], gone)).toBe(401)
  expect(await ask([...both, 'service-policy.read', 'posture-check.read'], gone)).toBe(200)
  expect(await ask(['admin_readonly'], gone)).toBe(200)
  for (const permissions of [['identity.read'], ['service.read'], []]) {
    expect(await ask(permissions, gone)).toBe(401)
  }
  // Even a refusal would distinguish an existing name from a missing one.
  const guess = { roleAttributes: ['a'], configs: ['guess'] }
  const patch = { action: 'patch', kind: 'service', id: service, data: guess }
  expect(await ask(both, patch)).toBe(401)
})

test('a preview for a caller who may not read routers contains neither routers nor their counts', async () => {
  const reads = ['service-policy', 'edge-router-policy', 'auth-policy']
  const caller = await eve(...both, ...reads.map((kind) => `${kind}.read`))
  await created('edge-router-policies', {
    semantic,
    name: 'b',
    identityRoles: ['#vaulted'],
    edgeRouterRoles: all,
  })
  const change = {
    action: 'patch',
    kind: 'identity',
    id: 'alice-id',
    data: { roleAttributes: ['vaulted'] },
  }
  const reply = await caller.call('POST', url, { changes: [change] })
  expect(reply.status, reply.text).toBe(200)
  expect(reply.body.data).toMatchObject({ counts: { router: null, serviceRouter: null }, rows: [] })
  expect(reply.text).not.toMatch(/vault/)
  expect((await root.call('POST', url, { changes: [change] })).text).toContain(router)
})

test('a preview of a change to an administrator’s identity is refused if the caller may not make this change', async () => {
  const reads = ['service-policy', 'edge-router-policy', 'auth-policy'].map(
    (kind) => `${kind}.read`,
  )
  const caller = await eve(...both, ...reads)
  const change = { action: 'patch', kind: 'identity', id: 'admin-id', data: { name: 'mine' } }
  const reply = await caller.call('POST', url, { changes: [change] })
  expect([reply.status, reply.body.error?.code]).toEqual([401, 'UNAUTHORIZED'])
})

test('an access preview with more changes than one log entry allows is refused before any change is evaluated', async () => {
  const change = { action: 'patch', kind: 'service', id: service, data: { name: 'other' } }
  const ask = (count: number) =>
    root.call('POST', url, { changes: Array.from({ length: count }, () => change) })
  expect((await ask(64)).status).toBe(200)
  const reply = await ask(65)
  expect([reply.status, reply.body.error?.cause?.['field']]).toEqual([400, 'changes'])
})

const clock = { nowMs: () => startMs, monotonicMs: () => 0 }
const base = { createdAt: startMs, updatedAt: startMs, revision: 1 }
const admin = { isAdmin: true, permissions: [] }

test('an access preview that would change too many records is stopped', () => {
  const { state, log } = formedState()
  log.create('service', 's', wiki('s'))
  for (let n = 0; n <= previewLimits.previewWritesMax; n += 1) {
    state.put('terminator', { ...base, id: `t${n}`, serviceId: 's', address: 'tcp:a:1' })
  }
  const writes = [{ mode: 'delete', entity: 'service', id: 's', fields: {} }] as const
  expect(new StateReader(state, clock).previewAccess(writes, admin)).toEqual({ outcome: 'tooMany' })
})

test('an access preview with roles that are too expensive to evaluate is refused', () => {
  const { state, log } = formedState()
  log.create('service', 's', wiki('s'))
  state.wholesale(() => {
    for (let n = 0; n < 5000; n += 1) {
      state.put('identity', { ...base, id: `i${n}`, name: `i${n}`, roleAttributes: ['crowd'] })
    }
    for (let n = 0; n < 900; n += 1) {
      const roles = [`#none${n}`, '@s']
      const fields = { name: `p${n}`, type: 'Dial', semantic, identityRoles: ['#crowd'] }
      state.put('servicePolicy', { ...base, ...fields, id: `p${n}`, serviceRoles: roles })
    }
  })
  const fields = policyOf('new', ['#crowd'], all)
  const writes = [{ mode: 'create', entity: 'servicePolicy', id: 'new', fields }] as const
  const preview = new StateReader(state, clock).previewAccess(writes, admin)
  if (preview.outcome !== 'judged') throw new Error('the policy is taken')
  const { difference } = preview
  expect(() => {
    while (difference.next().done !== true);
  }).toThrow('The supplied request contains an invalid document')
})
