import { expect, test } from 'vitest'
import { management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { made } from '../api/support/network.ts'

// The attack: the usage of role attributes contains policies of three kinds. A caller who may read
// only identities could learn from it which policies exist, and which attributes they select.
const { root, sessionOf } = await controllerForFile()

const created = (collection: string, body: object): Promise<string> =>
  made(root, `${management}/${collection}`, body)

const ann = await created('identities', {
  name: 'ann',
  type: 'User',
  isAdmin: false,
  roleAttributes: ['guests'],
})
const policy = await created('service-policies', {
  name: 'vault',
  semantic: 'AnyOf',
  type: 'Dial',
  identityRoles: ['#guests', '#future'],
  serviceRoles: ['#all'],
})

async function usageFor(...permissions: readonly string[]): Promise<unknown> {
  const name = `eve with ${permissions.join()}`
  const eve = await created('identities', { name, type: 'User', isAdmin: false, permissions })
  const url = `${management}/identity-role-attribute-usage?withIds=true`
  const reply = await sessionOf(eve).get(url)
  expect(reply.status, reply.text).toBe(200)
  const rows = reply.body.data as { readonly roleAttribute: string }[]
  return rows.filter(({ roleAttribute }) => ['future', 'guests'].includes(roleAttribute))
}

test('a caller who may read identities but no policies sees the usage of role attributes without policies, and no attribute that only policies name', async () => {
  expect(await usageFor('identity.read')).toEqual([
    { roleAttribute: 'guests', usage: { identities: { count: 1, ids: [ann] } } },
  ])
  expect(await usageFor('identity.read', 'service-policy.read')).toEqual([
    {
      roleAttribute: 'future',
      usage: {
        identities: { count: 0, ids: [] },
        servicePolicies: { count: 1, ids: [policy] },
      },
    },
    {
      roleAttribute: 'guests',
      usage: {
        identities: { count: 1, ids: [ann] },
        servicePolicies: { count: 1, ids: [policy] },
      },
    },
  ])
})
