import { expect, test } from 'vitest'
import { type CallerOf, management, type Reply } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import {
  type Detail,
  listed,
  made,
  newIdentity,
  newService,
  shown,
} from '../api/support/network.ts'
import { auditLimits } from '../../src/fsm/records/audit-line.ts'
import { listHistory } from '../../src/fsm/audit-query.ts'
import { loadState } from '../../src/fsm/records/load.ts'
import { currentStorePosition } from '../../src/fsm/records/write-behind.ts'
import { ClusterState } from '../../src/fsm/access/cluster-state.ts'
import { TestStore } from '../fsm/support/store.ts'

const { controller, root, sessionOf } = await controllerForFile()
const history = `${management}/history`
let serial = 0

async function callerWith(...permissions: readonly string[]): Promise<CallerOf> {
  serial += 1
  return sessionOf(await newIdentity(root, `caller ${serial}`, { permissions }))
}

async function newest(query: string): Promise<Detail> {
  const [first = {}] = await listed(root, `${history}?limit=1&${query}`)
  return first
}

function undo(caller: CallerOf, { index }: Detail): Promise<Reply> {
  return caller.call('POST', `${history}/${String(index)}/undo`)
}

// The attack: somebody undoes a change that they could not make themselves.

test('an undo requires the permission for every write that it makes', async () => {
  const id = await newService(root, 'payroll')
  const url = `${management}/services/${id}`
  const policyId = await made(root, `${management}/service-policies`, {
    name: 'to payroll',
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: ['#all'],
    serviceRoles: [`@${id}`],
  })
  await root.call('PATCH', url, { roleAttributes: ['closed'] })
  const patched = await newest('record=payroll')
  const plain = await callerWith()
  const reader = await callerWith('service.read', 'identity.read', 'service-policy.read')
  const everyReader = await callerWith('admin_readonly')
  expect((await undo(plain, patched)).status).toBe(404)
  for (const caller of [reader, everyReader]) {
    const unable = await undo(caller, patched)
    expect([unable.status, unable.body.error?.cause?.['message']]).toEqual([
      401,
      'the undo needs the permission service.update',
    ])
  }
  await root.call('DELETE', url)
  const deleted = await newest('record=payroll')
  const ofServices = await callerWith('service')
  const reply = await undo(ofServices, deleted)
  expect([reply.status, reply.body.error?.cause?.['message']]).toEqual([
    401,
    'the undo needs the permission service-policy.update',
  ])
  expect(await shown(root, `${management}/service-policies/${policyId}`)).toMatchObject({
    serviceRoles: null,
  })
  const ofBoth = await callerWith('service', 'service-policy')
  expect((await undo(ofBoth, deleted)).status).toBe(200)
  // The state machine checks the permission again, because an earlier log entry may have revoked
  // it.
  const { actor, judgedOn } = controller.cluster.proposals.at(-1) ?? {}
  expect(actor).toMatchObject({ case: 'session', value: { permission: 'service.create' } })
  expect(judgedOn).toContainEqual(expect.objectContaining({ entity: 'identity' }))
})

test('an undo cannot grant a right that its caller may not grant', async () => {
  const id = await newIdentity(root, 'Eve', { permissions: ['identity'] })
  await root.call('PATCH', `${management}/identities/${id}`, { permissions: [] })
  const demoted = await newest('record=Eve')
  await root.call('PATCH', `${management}/identities/${id}`, { isAdmin: true })
  const promoted = await newest('record=Eve')
  const helper = await callerWith('identity')
  for (const entry of [promoted, demoted]) {
    const reply = await undo(helper, entry)
    expect(reply.status, reply.text).toBe(401)
  }
  expect(await shown(root, `${management}/identities/${id}`)).toMatchObject({ isAdmin: true })
})

test('the preview of undoing a change of a service is refused to a caller with service.read alone, and shown to a caller with admin_readonly', async () => {
  const id = await newService(root, 'ledger')
  await root.call('PATCH', `${management}/services/${id}`, { roleAttributes: ['books'] })
  const { index } = await newest('record=ledger')
  const url = `${history}/${String(index)}/undo`
  const some = await callerWith('service.read')
  const refused = await some.get(url)
  expect([refused.status, refused.body.error?.cause?.['message']]).toEqual([
    401,
    expect.stringMatching(/^the operation needs the permission /),
  ])
  const all = await callerWith('admin_readonly')
  expect((await all.get(url)).status).toBe(200)
})

// The attack: somebody reads the history of records that they may not read.

test('the history shows its reader only entries and changes of kinds that the reader may read', async () => {
  const configType = await made(root, `${management}/config-types`, { name: 'hidden type' })
  const config = { name: 'hidden config', configTypeId: configType, data: { key: 'hidden value' } }
  const configId = await made(root, `${management}/configs`, config)
  const id = await newService(root, 'with hidden config', { configs: [configId] })
  await root.call('DELETE', `${management}/configs/${configId}`)
  const deletion = await newest('kind=config')
  const policy = { name: 'hidden policy', type: 'Dial', semantic: 'AnyOf', identityRoles: ['#all'] }
  await made(root, `${management}/service-policies`, { ...policy, serviceRoles: [`@${id}`] })
  await root.call('DELETE', `${management}/services/${id}`)
  const reader = await callerWith('service.read')
  const rows = await listed(reader, `${history}?record=${id}`)
  expect(rows.map(({ action }) => action)).toEqual(['delete', 'create'])
  expect(JSON.stringify(rows)).not.toContain('hidden policy')
  expect(rows[0]).toMatchObject({
    omittedChanges: 1,
    actor: { id: '', name: '' },
    session: '',
    address: '',
  })
  for (const query of ['', '?kind=config', '?record=hidden%20config', '?all=true']) {
    const shownRows = await listed(reader, `${history}${query}`)
    expect(new Set(shownRows.map(({ entity }) => entity)).difference(new Set(['service']))).toEqual(
      new Set(),
    )
  }
  expect((await reader.get(`${history}/${String(deletion['index'])}`)).status).toBe(404)
  expect((await reader.get(`${history}/${String(deletion['index'])}/undo`)).status).toBe(404)
  for (const query of ['filter=address%3D%22x%22', 'sort=session', 'actor=admin-id']) {
    expect((await reader.get(`${history}?${query}`)).status, query).toBe(401)
  }
  expect(await listed(await callerWith(), history)).toEqual([])
})

test('a refused undo reveals nothing about records that the caller may not read', async () => {
  const id = await newService(root, 'archive')
  const policyId = await made(root, `${management}/service-policies`, {
    name: 'hidden policy of archive',
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: ['#all'],
    serviceRoles: [`@${id}`],
  })
  await root.call('DELETE', `${management}/services/${id}`)
  const { index } = await newest(`record=${id}`)
  const url = `${history}/${String(index)}/undo`
  const writer = await callerWith('service', 'service-policy.update')
  const reader = await callerWith('service')
  const refusals = async (): Promise<string[]> => {
    const replies = [
      await reader.get(url),
      await writer.get(url),
      await reader.call('POST', url),
      await writer.call('POST', url),
    ]
    expect(replies.map(({ status }) => status)).toEqual([401, 401, 401, 401])
    return replies.map(({ body }) => String(body.error?.cause?.['message']))
  }
  const before = await refusals()
  expect(before.join()).not.toContain('hidden policy')
  await root.call('PATCH', `${management}/service-policies/${policyId}`, { serviceRoles: ['#all'] })
  expect(await refusals()).toEqual(before)
})

test('a search of the history by name finds no record of a kind that its caller may not read', async () => {
  const id = await newService(root, 'wiki')
  await made(root, `${management}/service-policies`, {
    name: 'hidden policy of wiki',
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: ['#all'],
    serviceRoles: [`@${id}`],
  })
  await root.call('DELETE', `${management}/services/${id}`)
  const query = 'record=hidden%20policy%20of%20wiki'
  expect(await listed(root, `${history}?${query}`)).toHaveLength(2)
  const reader = await callerWith('service.read')
  expect(await listed(reader, `${history}?${query}`)).toEqual([])
  expect(await listed(reader, `${history}?record=wiki`)).toHaveLength(2)
})

// The attack: somebody fills the audit log with large changes and searches it, so that other
// callers wait.

test('a step of a search reads only a limited number of characters of the audit log', () => {
  const state = new ClusterState()
  const change = JSON.stringify([{ kind: 'config', id: 'c', name: 'x'.repeat(15_000) }])
  const count = 64
  for (let index = 1; index <= count; index += 1) {
    const who = { actor: 'mallory', actorName: '', session: 's', address: '192.0.2.1' }
    const what = { action: 'patch', entity: 'config', entityId: 'c', entityName: 'c' }
    const rest = { outcome: 'done', fields: [], also: [], reason: '' }
    state.remember({ index, atMs: index, ...who, ...what, ...rest, change })
    state.forget()
  }
  const none = { kind: undefined, actor: undefined, action: undefined }
  const always = { sinceMs: undefined, untilMs: undefined }
  const query = { tables: null, isOfRecords: true, record: 'c', ...none, ...always }
  let steps = 0
  for (const _ of listHistory(state, query)) steps += 1
  // The search reads the log twice: for the ids of the records, and for their entries.
  expect(steps).toBeGreaterThanOrEqual(Math.floor((2 * count * change.length) / 65_536))
})

// The attack: somebody writes so much that the audit log evicts the changes of others.

test('if one actor floods the history, this actor’s changes are evicted first, also after a restart', async () => {
  const state = new ClusterState()
  const store = new TestStore()
  const text = JSON.stringify([{ kind: 'config', id: 'c', name: 'x'.repeat(8000) }])
  const others = new Set<number>()
  const end = Math.ceil((auditLimits.changesCharactersMax / text.length) * 1.5)
  const remember = (one: ClusterState, index: number): void => {
    const isOther = index % 100 === 0
    const actor = isOther ? `person ${index % 3}` : 'mallory'
    const who = { actor, actorName: '', session: 's', address: '192.0.2.1' }
    const what = { action: 'patch', entity: 'config', entityId: 'c', entityName: 'c' }
    const rest = { outcome: 'done', fields: [], also: [], reason: '' }
    one.remember({ index, atMs: index, ...who, ...what, ...rest, change: text })
    one.forget()
    if (isOther) others.add(index)
  }
  for (let index = 1; index <= end; index += 1) {
    remember(state, index)
    if (index % 1000 === 0) await store.write(state.takeDirty(), currentStorePosition(state))
  }
  const rows = [...state.audit.newestFirst()]
  expect(rows).toHaveLength(end)
  const kept = rows.filter(({ change }) => change === text)
  const keptCharacters = kept.length * text.length
  expect(keptCharacters).toBeLessThan(auditLimits.changesCharactersMax * 1.01)
  expect(keptCharacters).toBeGreaterThan(auditLimits.changesCharactersMax * 0.9)
  expect(new Set(kept.map(({ id }) => Number(id))).intersection(others)).toEqual(others)
  expect(rows.at(-1)).toMatchObject({ change: '"DROPPED"' })
  expect(state.isDigestRight('state')).toBe(true)
  await store.write(state.takeDirty(), currentStorePosition(state))
  const loaded = await loadState(store, new ClusterState())
  expect(loaded.stateDigest()).toBe(state.stateDigest())
  for (let index = end + 1; index < end + 300; index += 1) {
    for (const one of [state, loaded]) remember(one, index)
  }
  expect(loaded.stateDigest()).toBe(state.stateDigest())
})
