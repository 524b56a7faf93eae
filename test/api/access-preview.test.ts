import { describe, expect, test } from 'vitest'
import { management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { made, newIdentity, newService } from './support/network.ts'

const { controller, root } = await controllerForFile()

interface Answer {
  readonly counts: Readonly<Record<string, { readonly given: number; readonly taken: number }>>
  readonly postureChanges: readonly Readonly<Record<string, unknown>>[]
  readonly rows: readonly {
    readonly right: string
    readonly change: string
    readonly identity: { readonly name: string; readonly isNew: boolean } | null
    readonly service: { readonly name: string; readonly isNew: boolean } | null
    readonly router: { readonly name: string } | null
  }[]
  readonly pagination: { readonly totalCount: number }
}

const path = `${management}/access/preview`
const ask = (changes: readonly object[], query = '') => root.call('POST', path + query, { changes })

async function previewed(changes: readonly object[], query = ''): Promise<Answer> {
  const digest = controller.state.stateDigest()
  const reply = await ask(changes, query)
  expect(reply.status, reply.text).toBe(200)
  expect(controller.state.stateDigest()).toBe(digest)
  return reply.body.data as Answer
}

const rowText = ({ right, change, identity, service, router }: Answer['rows'][number]): string =>
  [right, change, identity?.name, service?.name, router?.name].filter(Boolean).join(' ')

const laptop = await newIdentity(root, 'laptop', { roleAttributes: ['sales'] })
const crm = await newService(root, 'crm', { roleAttributes: ['crm'] })
const wiki = await newService(root, 'wiki')
const policy = await made(root, `${management}/service-policies`, {
  name: 'sales',
  type: 'Dial',
  semantic: 'AnyOf',
  identityRoles: ['#sales'],
  serviceRoles: ['#crm'],
})

test('an access preview applies the changes in order, and counts and lists the affected pairs of identity and service', async () => {
  const { counts, rows, pagination } = await previewed([
    { action: 'patch', kind: 'service', id: wiki, data: { roleAttributes: ['crm'] } },
    {
      action: 'create',
      kind: 'identity',
      id: 'new-one',
      data: { name: 'phone', type: 'Device', isAdmin: false, enrollment: { ott: true } },
    },
    {
      action: 'create',
      kind: 'servicePolicy',
      data: {
        name: 'phones',
        type: 'Bind',
        semantic: 'AnyOf',
        identityRoles: ['@new-one'],
        serviceRoles: [`@${crm}`],
      },
    },
  ])
  expect(counts['dial']).toEqual({ given: 1, taken: 0 })
  expect(counts['bind']).toEqual({ given: 1, taken: 0 })
  expect(rows.map(rowText)).toEqual(['dial given laptop wiki', 'bind given phone crm'])
  expect(rows.map(({ identity }) => identity?.isNew)).toEqual([false, true])
  expect(pagination.totalCount).toBe(2)
})

test('the access preview of deleting a policy lists only the access that no other policy grants', async () => {
  const gone = [{ action: 'delete', kind: 'servicePolicy', id: policy }]
  expect((await previewed(gone)).rows.map(rowText)).toEqual(['dial taken laptop crm'])
  const other = {
    action: 'create',
    kind: 'servicePolicy',
    data: {
      name: 'in its place',
      type: 'Dial',
      semantic: 'AllOf',
      identityRoles: [`@${laptop}`],
      serviceRoles: ['#all'],
    },
  }
  expect((await previewed([...gone, other])).rows.map(rowText)).toEqual(['dial given laptop wiki'])
})

test('an access preview shows the effect of new router policies and of a new posture check, and can be paged', async () => {
  const router = await made(root, `${management}/edge-routers`, { name: 'gate' })
  const routers = { semantic: 'AnyOf', edgeRouterRoles: ['#all'] }
  const create = { action: 'create' } as const
  const changes = [
    {
      ...create,
      kind: 'edgeRouterPolicy',
      data: { name: 'a', ...routers, identityRoles: ['#all'] },
    },
    {
      ...create,
      kind: 'serviceEdgeRouterPolicy',
      data: { name: 'b', ...routers, serviceRoles: [`@${crm}`] },
    },
    { ...create, kind: 'postureCheck', id: 'check', data: { name: 'mfa', typeId: 'MFA' } },
    {
      action: 'patch',
      kind: 'servicePolicy',
      id: policy,
      data: { postureCheckRoles: ['@check'] },
    },
  ]
  const { counts, postureChanges, rows } = await previewed(changes, '?right=serviceRouter')
  expect(counts['router']).toEqual({
    given: controller.state.table('identity').rows.size,
    taken: 0,
  })
  expect(rows.map(rowText)).toEqual(['serviceRouter given crm gate'])
  expect(postureChanges).toMatchObject([
    { policy: { name: 'sales' }, given: [{ name: 'mfa', isNew: true }], taken: [], written: [] },
  ])
  const all = await previewed(changes, '?limit=500')
  const paged: string[] = []
  for (let offset = 0; offset < all.pagination.totalCount; offset += 2) {
    paged.push(...(await previewed(changes, `?limit=2&offset=${offset}`)).rows.map(rowText))
  }
  expect(paged).toEqual(all.rows.map(rowText))
  expect((await previewed(changes, '?change=taken')).rows).toEqual([])
  await root.call('DELETE', `${management}/edge-routers/${router}`)
})

describe('an access preview with an invalid write', () => {
  const refusal = async (...changes: readonly object[]): Promise<string> => {
    const { status, body } = await ask(changes)
    const { cause } = body.error ?? {}
    const where = String(cause?.['field'] ?? cause?.['message'] ?? '')
    return `${status} ${body.error?.code ?? ''} ${where}`
  }
  const ofPolicy = { action: 'patch', kind: 'servicePolicy', id: policy }

  test('is refused, and the response contains the index of the invalid write', async () => {
    const fine = { ...ofPolicy, data: {} }
    expect(await refusal(fine, { ...ofPolicy, data: { type: 'Call' } })).toBe(
      '400 COULD_NOT_VALIDATE changes.1.data.type',
    )
    expect(await refusal(fine, { ...ofPolicy, data: { serviceRoles: ['@none'] } })).toBe(
      '400 COULD_NOT_VALIDATE changes.1.data.serviceRoles',
    )
    expect(await refusal({ ...ofPolicy, id: 'none', data: {} })).toMatch(
      /^404 NOT_FOUND changes\.0: .*not found/,
    )
    const taken = { name: 'wiki', encryptionRequired: true }
    expect(await refusal({ action: 'create', kind: 'service', data: taken })).toBe(
      '400 COULD_NOT_VALIDATE changes.0.data.name',
    )
  })

  test('is refused if the write has an unsupported kind or action, or no ID; a preview without changes or with more than 64 is refused as well', async () => {
    const router = { action: 'create', kind: 'edgeRouter', data: { name: 'x' } }
    expect(await refusal(router)).toBe('400 COULD_NOT_VALIDATE changes.0.action')
    expect(await refusal({ action: 'delete', kind: 'servicePolicy' })).toBe(
      '400 COULD_NOT_VALIDATE changes.0.id',
    )
    expect((await ask([])).status).toBe(400)
    expect((await ask(Array.from({ length: 65 }, () => ({ ...ofPolicy, data: {} })))).status).toBe(
      400,
    )
    expect((await ask([{ action: 'delete', kind: 'ca', id: 'x' }])).status).toBe(400)
  })
})

test('an access preview starts again if records change during it, and fails if records keep changing', async () => {
  const { state } = controller.parts
  const judge = state.previewAccess.bind(state)
  let begun = 0
  state.previewAccess = (...given) => {
    begun += 1
    const judged = judge(...given)
    if (judged.outcome !== 'judged' || begun > 4) return judged
    return {
      ...judged,
      difference: (function* () {
        yield
        return null
      })(),
    }
  }
  const changes = [{ action: 'delete', kind: 'servicePolicy', id: policy }]
  const moved = await ask(changes)
  expect([moved.status, moved.body.error?.code, begun]).toEqual([409, 'REVISION_MOVED', 4])
  expect((await ask(changes)).status).toBe(200)
  state.previewAccess = judge
})
