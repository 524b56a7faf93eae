import { describe, expect, test } from 'vitest'
import { CallerOf, client, management, type Reply } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'

const { controller, root } = await controllerForFile()

const checks = `${management}/posture-checks`
let serial = 0
const idOf = (reply: Reply): string => {
  expect(reply.status, reply.text).toBe(201)
  return (reply.body.data as { id: string }).id
}
const create = (body: object): Promise<Reply> => {
  serial += 1
  return root.call('POST', checks, { name: `check ${serial}`, ...body })
}
const shown = async (id: string): Promise<Record<string, unknown>> =>
  (await root.get(`${checks}/${id}`)).body.data as Record<string, unknown>
const base = [
  '_links',
  'createdAt',
  'id',
  'name',
  'roleAttributes',
  'tags',
  'typeId',
  'updatedAt',
  'version',
]

const os = { typeId: 'OS', operatingSystems: [{ type: 'Windows', versions: ['>=10.0.0 <11.0.0'] }] }
const domain = { typeId: 'DOMAIN', domains: ['corp.test'] }
const mac = { typeId: 'MAC', macAddresses: ['001b44113ab7'] }
const one = { osType: 'Linux', path: '/usr/bin/agent', hashes: ['ab01'], signerFingerprint: 'cd02' }
const process = { typeId: 'PROCESS', process: one }
const many = { osType: 'macOS', path: '/bin/x', hashes: ['AA'], signerFingerprints: ['BB'] }
const multi = { typeId: 'PROCESS_MULTI', semantic: 'AnyOf', processes: [many] }
const mfa = {
  typeId: 'MFA',
  timeoutSeconds: 60,
  promptOnWake: true,
  promptOnUnlock: false,
  ignoreLegacyEndpoints: true,
}

describe('a posture check', () => {
  test.each([
    ['OS', os],
    ['DOMAIN', domain],
    ['MAC', mac],
    ['PROCESS', process],
    ['PROCESS_MULTI', multi],
    ['MFA', mfa],
  ])('of the type %s has only the fields of that type', async (_type, body) => {
    const id = idOf(await create({ ...body, roleAttributes: ['b', 'a'] }))
    const detail = await shown(id)
    expect(detail).toMatchObject({ ...body, roleAttributes: ['a', 'b'], version: 1 })
    expect(Object.keys(detail).sort()).toEqual([...new Set([...base, ...Object.keys(body)])].sort())
    const whole = {
      ...os,
      ...domain,
      ...mac,
      ...process,
      ...multi,
      ...mfa,
      ...body,
      name: `again ${serial}`,
    }
    const reply = await root.call('PUT', `${checks}/${id}`, whole)
    expect(reply.status, reply.text).toBe(200)
    expect(await shown(id)).toMatchObject({ ...body, name: `again ${serial}`, roleAttributes: [] })
    expect(Object.keys(await shown(id)).sort()).toEqual(Object.keys(detail).sort())
    expect(reply.body.meta?.ignoredFields).toEqual(
      expect.arrayContaining(Object.keys(whole).filter((name) => !(name in detail))),
    )
    expect((await root.call('DELETE', `${checks}/${id}`)).status).toBe(200)
    expect((await root.call('DELETE', `${checks}/${id}`)).status).toBe(404)
  })

  test.each([
    ['typeId', { domains: ['a'] }],
    ['typeId', { typeId: 'LUCK' }],
    ['operatingSystems', { typeId: 'OS' }],
    ['operatingSystems', { typeId: 'OS', operatingSystems: [] }],
    [
      'operatingSystems.0.type',
      { typeId: 'OS', operatingSystems: [{ type: 'DOS', versions: [] }] },
    ],
    ['operatingSystems.0.versions', { typeId: 'OS', operatingSystems: [{ type: 'iOS' }] }],
    [
      'operatingSystems',
      { typeId: 'OS', operatingSystems: [{ type: 'iOS', versions: ['eleven'] }] },
    ],
    ['domains', { typeId: 'DOMAIN', domains: [] }],
    ['domains', { typeId: 'DOMAIN', domains: null }],
    ['macAddresses', { typeId: 'MAC' }],
    ['macAddresses', { typeId: 'MAC', macAddresses: ['nobody'] }],
    ['macAddresses', { typeId: 'MAC', macAddresses: ['0'.repeat(32)] }],
    ['process', { typeId: 'PROCESS' }],
    ['process.path', { typeId: 'PROCESS', process: { osType: 'Linux' } }],
    ['process.osType', { typeId: 'PROCESS', process: { osType: 'DOS', path: 'x' } }],
    ['processes', { typeId: 'PROCESS_MULTI', semantic: 'AllOf' }],
    ['processes', { typeId: 'PROCESS_MULTI', semantic: 'AllOf', processes: [] }],
    ['semantic', { typeId: 'PROCESS_MULTI', processes: [many] }],
    ['semantic', { typeId: 'PROCESS_MULTI', processes: [many], semantic: 'Some' }],
  ])('is refused, and the error names the field %s, for the body %j', async (field, body) => {
    const reply = await create(body)
    expect(reply.status, reply.text).toBe(400)
    expect(reply.body.error?.cause?.['field']).toBe(field)
  })

  test('stores addresses without separators, but hashes and signers as the caller wrote them', async () => {
    const macs = ['00:1B:44:11:3A:B7', '00-1b-44-11-3a-b8', '001b.4411.3ab9']
    const id = idOf(await create({ typeId: 'MAC', macAddresses: macs }))
    const addresses = ['001b44113ab7', '001b44113ab8', '001b44113ab9']
    expect(await shown(id)).toMatchObject({ macAddresses: addresses })
    const written = { ...one, hashes: ['AB:01'], signerFingerprint: 'CD 02', extra: 1 }
    const other = idOf(await create({ typeId: 'PROCESS', process: written }))
    const { extra: _extra, ...stored } = written
    expect((await shown(other))['process']).toEqual(stored)
    const bare = idOf(
      await create({ typeId: 'PROCESS', process: { osType: 'Linux', path: '/x', hashes: null } }),
    )
    expect(await shown(bare)).toMatchObject({ process: { hashes: [], signerFingerprint: '' } })
  })

  test('stores at most one entry per operating system: the last one in the request', async () => {
    const operatingSystems = [
      { type: 'Windows', versions: ['10.0.0'] },
      { type: 'Linux', versions: [] },
      { type: 'Windows', versions: ['11.x || >= 12.0.0'] },
    ]
    const id = idOf(await create({ typeId: 'OS', operatingSystems }))
    expect((await shown(id))['operatingSystems']).toEqual([
      operatingSystems[2],
      operatingSystems[1],
    ])
  })

  test.each([[0], [-5], [null], [undefined]])(
    'of the type MFA treats the timeout %j as no timeout',
    async (timeoutSeconds) => {
      const id = idOf(await create({ typeId: 'MFA', timeoutSeconds }))
      expect(await shown(id)).toMatchObject({
        timeoutSeconds: -1,
        promptOnWake: false,
        promptOnUnlock: false,
        ignoreLegacyEndpoints: false,
      })
    },
  )

  test('requires its unchanged type in a patch, and keeps omitted fields', async () => {
    const id = idOf(await create({ ...multi, roleAttributes: ['a'], tags: { x: 1 } }))
    const patch = (body: object): Promise<Reply> => root.call('PATCH', `${checks}/${id}`, body)
    expect((await patch({ semantic: 'AllOf' })).body.error?.cause?.['field']).toBe('typeId')
    expect((await patch({ typeId: 'MFA' })).body.error?.cause?.['field']).toBe('typeId')
    expect((await patch({ typeId: 'PROCESS_MULTI', semantic: 'AllOf' })).status).toBe(200)
    expect(await shown(id)).toMatchObject({
      ...multi,
      semantic: 'AllOf',
      roleAttributes: ['a'],
      tags: { x: 1 },
    })
    expect((await patch({ typeId: 'PROCESS_MULTI', processes: [] })).status).toBe(400)
    const single = idOf(await create(process))
    const rename = { typeId: 'PROCESS', name: `renamed ${serial}` }
    expect((await root.call('PATCH', `${checks}/${single}`, rename)).status).toBe(200)
    expect(await shown(single)).toMatchObject({ name: `renamed ${serial}`, process: one })
    expect((await root.call('PATCH', `${checks}/nope`, { typeId: 'OS' })).status).toBe(404)
    const other = await root.call('PUT', `${checks}/${single}`, { name: 'x', ...mfa })
    expect(other.body.error?.cause?.['field']).toBe('typeId')
    const untyped = await root.call('PUT', `${checks}/${single}`, {
      name: `put ${serial}`,
      process: one,
    })
    expect(untyped.status, untyped.text).toBe(200)
  })

  test('for one process keeps the hashes and the signer if a patch omits them', async () => {
    const id = idOf(await create(process))
    const patch = (body: object): Promise<Reply> =>
      root.call('PATCH', `${checks}/${id}`, { typeId: 'PROCESS', process: body })
    expect((await patch({ osType: 'Linux', path: '/opt/agent' })).status).toBe(200)
    expect(await shown(id)).toMatchObject({ process: { ...one, path: '/opt/agent' } })
    expect((await patch({ hashes: ['EF:02'], signerFingerprint: null })).status).toBe(200)
    expect(await shown(id)).toMatchObject({
      process: { ...one, path: '/opt/agent', hashes: ['EF:02'] },
    })
    expect((await patch({ hashes: [], signerFingerprint: '' })).status).toBe(200)
    expect(await shown(id)).toMatchObject({
      process: { osType: 'Linux', path: '/opt/agent', hashes: [], signerFingerprint: '' },
    })
  })

  test('can be found by its type, its prompts and its role attributes', async () => {
    const id = idOf(await create({ ...mfa, roleAttributes: ['found'] }))
    const found = async (query: string): Promise<unknown[]> =>
      ((await root.get(`${checks}?${query}`)).body.data as { id: string }[]).map((row) => row.id)
    expect(await found(`roleFilter=%23found`)).toEqual([id])
    const filter = encodeURIComponent(
      'typeId = "MFA" and promptOnWake = true sort by createdAt desc',
    )
    expect(await found(`filter=${filter}`)).toContain(id)
  })

  test('can be deleted once no policy references it', async () => {
    const id = idOf(await create(domain))
    const policy = { name: 'p', type: 'Dial', semantic: 'AnyOf', postureCheckRoles: [`@${id}`] }
    const policyId = idOf(await root.call('POST', `${management}/service-policies`, policy))
    expect((await root.call('DELETE', `${checks}/${id}`)).status).toBe(409)
    const change = { postureCheckRoles: [] }
    const url = `${management}/service-policies/${policyId}`
    expect((await root.call('PATCH', url, change)).status).toBe(200)
    expect((await root.call('DELETE', `${checks}/${id}`)).status).toBe(200)
  })
})

describe('the list of types', () => {
  test('contains five types of posture checks, for any session', async () => {
    const alice = new CallerOf(controller)
    alice.token = controller.openSession('alice-id')
    const listed = await alice.get(`${management}/posture-check-types`)
    const rows = listed.body.data as Record<string, unknown>[]
    expect(rows.map(({ id }) => id)).toEqual(['DOMAIN', 'MAC', 'OS', 'PROCESS', 'PROCESS_MULTI'])
    const os = await alice.get(`${management}/posture-check-types/OS`)
    expect(os.body.data).toMatchObject({
      name: 'Operating System Check',
      version: '1',
      operatingSystems: expect.arrayContaining([{ type: 'iOS', versions: ['11', '12'] }]),
    })
    expect((await alice.get(`${management}/posture-check-types/MFA`)).status).toBe(404)
  })

  test('contains five types of identities, for any session of the management API', async () => {
    const alice = new CallerOf(controller)
    alice.token = controller.openSession('alice-id')
    const listed = await alice.get(`${management}/identity-types`)
    expect((listed.body.data as { id: string }[]).map(({ id }) => id)).toEqual([
      'Default',
      'Device',
      'Router',
      'Service',
      'User',
    ])
    expect((await root.get(`${management}/identity-types/Router`)).body.data).toMatchObject({
      name: 'Router',
    })
    expect((await root.get(`${client}/identity-types`)).status).toBe(404)
  })
})
