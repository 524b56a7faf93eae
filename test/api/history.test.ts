import { describe, expect, test } from 'vitest'
import { type CallerOf, fabric, management, type Reply } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { type Detail, listed, made, newIdentity, newService, shown } from './support/network.ts'

const { controller, root, sessionOf } = await controllerForFile()
const history = `${management}/history`

async function newest(caller: CallerOf, query: string): Promise<Detail> {
  const [first = {}] = await listed(caller, `${history}?limit=1&${query}`)
  return first
}

async function undo(caller: CallerOf, entry: Detail, body?: Detail): Promise<Reply> {
  return caller.call('POST', `${history}/${String(entry['index'])}/undo`, body)
}

function causeOf({ body }: Reply): readonly unknown[] {
  return [body.error?.code, body.error?.cause?.['message']]
}

describe('the history of a service', () => {
  test('shows who made which change, with names, even if the service is deleted', async () => {
    const id = await newService(root, 'wiki', { roleAttributes: ['web'] })
    await root.call('PATCH', `${management}/services/${id}`, { name: 'docs', roleAttributes: [] })
    await root.call('DELETE', `${management}/services/${id}`)
    const rows = await listed(root, `${history}?kind=service&record=wiki`)
    const about = { entity: 'service', entityId: id, exists: false, outcome: 'done' }
    const actor = { id: 'admin-id', name: 'Default Admin' }
    const change = { kind: 'service', id, isPartial: false }
    expect(rows).toMatchObject([
      { ...about, actor, action: 'delete', entityName: 'docs', changes: [{ after: null }] },
      {
        ...about,
        actor,
        action: 'patch',
        changeState: 'KEPT',
        changes: [
          {
            ...change,
            name: 'docs',
            before: { name: 'wiki', roleAttributes: ['web'] },
            after: { name: 'docs', roleAttributes: [] },
          },
        ],
      },
      { ...about, actor, action: 'create', entityName: 'wiki', changes: [{ before: null }] },
    ])
    const [raw] = await listed(root, `${fabric}/audit?limit=1&filter=entityName%3D%22docs%22`)
    expect(raw).toEqual(rows[0])
    expect(await shown(root, `${history}/${String(rows[1]?.['index'])}`)).toEqual(rows[1])
  })

  test('can be searched by actor, action and time', async () => {
    const since = new Date(controller.clock.nowMs() + 60_000).toISOString()
    controller.clock.advance(120_000)
    const annId = await newIdentity(root, 'Ann', { permissions: ['service'] })
    const ann = sessionOf(annId)
    const id = await newService(ann, 'by Ann')
    await ann.call('PATCH', `${management}/services/${id}`, { roleAttributes: ['x'] })
    const names = async (query: string) =>
      (await listed(root, `${history}?${query}`)).map(
        ({ action, entityName }) => `${String(action)} ${String(entityName)}`,
      )
    expect(await names('actor=Ann')).toEqual(['patch by Ann', 'create by Ann'])
    expect(await names(`actor=${annId}&action=update`)).toEqual(['patch by Ann'])
    expect(await names(`kind=service&since=${since}`)).toEqual(['patch by Ann', 'create by Ann'])
    expect(await names(`kind=identity&since=${since}`)).toEqual(['create Ann'])
    expect(await names(`since=${since}&until=${since}`)).toEqual([])
    const wrong = await root.get(`${history}?since=yesterday`)
    expect([wrong.status, wrong.body.error?.cause?.['field']]).toEqual([400, 'since'])
  })
})

describe('the undo of an audited write', () => {
  test('restores the old values of a changed record, and its preview shows the effect on access', async () => {
    const serviceId = await newService(root, 'crm', { roleAttributes: ['crm'] })
    const bobId = await newIdentity(root, 'Bob', { roleAttributes: ['sales'] })
    const policy = { name: 'sales to crm', type: 'Dial', semantic: 'AnyOf' }
    const policyId = await made(root, `${management}/service-policies`, {
      ...policy,
      identityRoles: ['#sales'],
      serviceRoles: ['#crm'],
    })
    const url = `${management}/service-policies/${policyId}`
    await root.call('PATCH', url, { identityRoles: [] })
    const entry = await newest(root, 'record=sales%20to%20crm')
    const previewed = await shown(root, `${history}/${String(entry['index'])}/undo`)
    expect(previewed).toMatchObject({
      entry: { index: entry['index'] },
      writes: [{ action: 'patch', kind: 'servicePolicy', id: policyId, name: 'sales to crm' }],
      changes: [{ before: { identityRoles: [] }, after: { identityRoles: ['#sales'] } }],
      access: {
        counts: { dial: { given: 1, taken: 0 } },
        rows: [{ identity: { id: bobId }, service: { id: serviceId } }],
      },
    })
    expect(await shown(root, url)).toMatchObject({ identityRoles: null })
    const reply = await undo(root, entry, { version: previewed['version'] })
    expect(reply.status, reply.text).toBe(200)
    expect(await shown(root, url)).toMatchObject({ identityRoles: ['#sales'] })
  })

  test('restores the expiry of a policy', async () => {
    const expiresAt = new Date(controller.clock.nowMs() + 86_400_000).toISOString()
    const policy = { name: 'for a day', type: 'Dial', semantic: 'AnyOf', serviceRoles: ['#all'] }
    const id = await made(root, `${management}/service-policies`, { ...policy, expiresAt })
    const url = `${management}/service-policies/${id}`
    const later = new Date(controller.clock.nowMs() + 172_800_000).toISOString()
    await root.call('PATCH', url, { expiresAt: later })
    expect(await shown(root, url)).toMatchObject({ expiresAt: later })
    const reply = await undo(root, await newest(root, 'record=for%20a%20day'))
    expect(reply.status, reply.text).toBe(200)
    expect(await shown(root, url)).toMatchObject({ expiresAt })
    await root.call('DELETE', url)
    expect((await undo(root, await newest(root, 'record=for%20a%20day'))).status).toBe(200)
    expect(await shown(root, url)).toMatchObject({ expiresAt })
  })

  test('restores the expiry of a role attribute', async () => {
    const end = new Date(controller.clock.nowMs() + 86_400_000).toISOString()
    const ends = { roleAttributesExpireAt: { guest: end } }
    const id = await newIdentity(root, 'Gus', { roleAttributes: ['guest'], ...ends })
    const url = `${management}/identities/${id}`
    const later = new Date(controller.clock.nowMs() + 172_800_000).toISOString()
    await root.call('PATCH', url, { roleAttributesExpireAt: { guest: later } })
    const reply = await undo(root, await newest(root, 'record=Gus'))
    expect(reply.status, reply.text).toBe(200)
    expect(await shown(root, url)).toMatchObject(ends)
  })

  test('deletes a created record, and creates a deleted record with the same ID', async () => {
    const id = await newService(root, 'mail', { roleAttributes: ['mail'] })
    const policyId = await made(root, `${management}/service-policies`, {
      name: 'to mail',
      type: 'Dial',
      semantic: 'AnyOf',
      identityRoles: ['#all'],
      serviceRoles: [`@${id}`],
    })
    await root.call('DELETE', `${management}/services/${id}`)
    const policy = `${management}/service-policies/${policyId}`
    expect(await shown(root, policy)).toMatchObject({ serviceRoles: null })
    const deleted = await undo(root, await newest(root, 'record=mail&action=delete'))
    expect(deleted.body.data).toMatchObject({
      writes: [
        { action: 'create', kind: 'service', id },
        { action: 'patch', kind: 'servicePolicy', id: policyId },
      ],
    })
    expect(await shown(root, `${management}/services/${id}`)).toMatchObject({
      id,
      name: 'mail',
      roleAttributes: ['mail'],
      encryptionRequired: true,
    })
    expect(await shown(root, policy)).toMatchObject({ serviceRoles: [`@${id}`] })
    const fresh = await newService(root, 'fresh')
    expect((await undo(root, await newest(root, 'record=fresh'))).status).toBe(200)
    expect((await root.get(`${management}/services/${fresh}`)).status).toBe(404)
  })

  test('is refused if a later entry changed the same fields, and possible once that later entry is undone', async () => {
    const id = await newService(root, 'git')
    const url = `${management}/services/${id}`
    await root.call('PATCH', url, { roleAttributes: ['one'] })
    const first = await newest(root, 'record=git')
    await root.call('PATCH', url, { roleAttributes: ['two'] })
    const second = await newest(root, 'record=git')
    const refused = await undo(root, first)
    expect(refused.status).toBe(409)
    expect(causeOf(refused)).toEqual(['CHANGED_SINCE', 'service git was changed: roleAttributes'])
    expect((await undo(root, second)).status).toBe(200)
    expect((await undo(root, first)).status).toBe(200)
    expect(await shown(root, url)).toMatchObject({ roleAttributes: null })
  })

  test('is refused if the record was changed after the preview of the undo', async () => {
    const id = await newService(root, 'db')
    const url = `${management}/services/${id}`
    await root.call('PATCH', url, { roleAttributes: ['one'] })
    const entry = await newest(root, 'record=db')
    const { version } = await shown(root, `${history}/${String(entry['index'])}/undo`)
    await root.call('PATCH', url, { maxIdleTimeMillis: 60_000 })
    expect((await undo(root, entry, { version })).status).toBe(412)
    expect((await undo(root, entry)).status).toBe(200)
    expect(await shown(root, url)).toMatchObject({
      roleAttributes: null,
      maxIdleTimeMillis: 60_000,
    })
  })

  test('is refused for a deleted record whose secrets are not kept, with this reason', async () => {
    const id = await newIdentity(root, 'Carl', { enrollment: { ott: true } })
    await root.call('DELETE', `${management}/identities/${id}`)
    const refused = await undo(root, await newest(root, 'record=Carl'))
    expect(refused.status).toBe(409)
    expect(causeOf(refused)).toEqual([
      'CANNOT_UNDO',
      expect.stringMatching(/^enrollment .* had secrets that are not kept; create a new one$/),
    ])
  })

  test('is refused for a write that was refused, and for a write that another operation reverses, such as disabling an identity', async () => {
    await newService(root, 'dns')
    await root.call('POST', `${management}/services`, { name: 'dns', encryptionRequired: true })
    expect(causeOf(await undo(root, await newest(root, 'kind=service&actor=admin-id')))).toEqual([
      'CANNOT_UNDO',
      'it changed nothing; its outcome is COULD_NOT_VALIDATE',
    ])
    const identity = await newIdentity(root, 'Dora')
    await root.call('POST', `${management}/identities/${identity}/disable`, { durationMinutes: 5 })
    expect(causeOf(await undo(root, await newest(root, 'record=Dora')))).toEqual([
      'CANNOT_UNDO',
      'identity-disable has its own inverse operation, so use that one',
    ])
    expect((await undo(root, { index: 999_999 })).status).toBe(404)
    expect((await undo(root, { index: 'x' })).status).toBe(404)
  })

  test('validates the old data of a config with the current schema of its type', async () => {
    const typeId = await made(root, `${management}/config-types`, { name: 'app', schema: {} })
    const config = { name: 'app one', configTypeId: typeId, data: { port: 1 } }
    const id = await made(root, `${management}/configs`, config)
    const url = `${management}/configs/${id}`
    const patched = await root.call('PATCH', url, { data: { host: 'a' } })
    expect(patched.status, patched.text).toBe(200)
    const entry = await newest(root, 'record=app%20one')
    expect(entry).toMatchObject({ action: 'patch' })
    const schema = { type: 'object', required: ['host'] }
    await root.call('PATCH', `${management}/config-types/${typeId}`, { schema })
    const refused = await undo(root, entry)
    expect([refused.status, refused.body.error?.code]).toEqual([400, 'COULD_NOT_VALIDATE'])
    expect(await shown(root, url)).toMatchObject({ data: { host: 'a' } })
  })
})
