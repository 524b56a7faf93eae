import { expect, test } from 'vitest'
import { newCa } from '../support/authorities.ts'
import { fabric, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { type Detail, listed, made, newIdentity, shown } from './support/network.ts'

// Goal: responses contain a field without a value in the same form as responses of OpenZiti 2.0.3,
// because Terraform distinguishes [] from null.

const { controller, root, sessionOf } = await controllerForFile()
let serial = 0
const name = (): string => `empty ${(serial += 1)}`

interface Kind {
  readonly url: string
  readonly minimal: () => Detail | Promise<Detail>
  /** Expected values of the fields that a minimal record omits. */
  readonly values: Detail
  /** Members that a patch must repeat. */
  readonly inPatch?: Detail
  /** How a record without these values shows them. */
  readonly shown: Detail
}

const semantic = 'AnyOf'
async function newConfig(target: 'service' | 'router'): Promise<string> {
  const configTypeId = await made(root, `${management}/config-types`, { name: name(), target })
  return await made(root, `${management}/configs`, { name: name(), configTypeId, data: {} })
}
const configs = [await newConfig('service')]
const routerConfigs = [await newConfig('router')]
const roleAttributes = ['a']
const identityRoles = ['#a']
const edgeRouterRoles = ['#b']
const serviceRoles = ['#c']

const router = { configs: null, interfaces: null }
const kinds: Readonly<Record<string, Kind>> = {
  'service policy': {
    url: `${management}/service-policies`,
    minimal: () => ({ name: name(), type: 'Dial', semantic }),
    values: { identityRoles, serviceRoles, postureCheckRoles: ['#d'] },
    shown: {
      identityRoles: null,
      identityRolesDisplay: [],
      serviceRoles: null,
      serviceRolesDisplay: [],
      postureCheckRoles: null,
      postureCheckRolesDisplay: [],
    },
  },
  'edge router policy': {
    url: `${management}/edge-router-policies`,
    minimal: () => ({ name: name(), semantic }),
    values: { identityRoles, edgeRouterRoles },
    shown: { identityRoles: null, edgeRouterRoles: null },
  },
  'service edge router policy': {
    url: `${management}/service-edge-router-policies`,
    minimal: () => ({ name: name(), semantic }),
    values: { serviceRoles, edgeRouterRoles },
    shown: { serviceRoles: null, edgeRouterRoles: null },
  },
  service: {
    url: `${management}/services`,
    minimal: () => ({ name: name(), encryptionRequired: true }),
    values: { configs, roleAttributes },
    shown: { config: {}, configs: null, roleAttributes: null, tags: {} },
  },
  identity: {
    url: `${management}/identities`,
    minimal: () => ({ name: name(), type: 'Device', isAdmin: false }),
    values: { roleAttributes, permissions: ['service'], appData: { a: 'b' }, tags: { a: 'b' } },
    shown: { roleAttributes: [], permissions: null, interfaces: null, appData: {}, tags: {} },
  },
  'edge router': {
    url: `${management}/edge-routers`,
    minimal: () => ({ name: name() }),
    values: { configs: routerConfigs, roleAttributes, appData: { a: 'b' } },
    shown: { ...router, roleAttributes: null, appData: {} },
  },
  'transit router': {
    url: `${management}/transit-routers`,
    minimal: () => ({ name: name() }),
    values: { configs: routerConfigs },
    shown: router,
  },
  'router of the fabric': {
    url: `${fabric}/routers`,
    minimal: () => {
      const id = `fabric-${(serial += 1)}`
      return { id, name: id, cost: 0, noTraversal: false }
    },
    values: { configs: routerConfigs },
    shown: { ...router, listenerAddresses: null },
  },
  CA: {
    url: `${management}/cas`,
    minimal: async () => ({
      name: name(),
      certPem: (await newCa(name(), controller.clock.nowMs())).certificatePem,
      identityRoles: [],
      isAuthEnabled: false,
      isAutoCaEnrollmentEnabled: false,
      isOttCaEnrollmentEnabled: false,
    }),
    values: { identityRoles: ['a'] },
    shown: { identityRoles: null },
  },
  'external JWT signer': {
    url: `${management}/external-jwt-signers`,
    minimal: () => ({
      name: name(),
      enabled: true,
      issuer: `https://issuer-${(serial += 1)}.test`,
      audience: 'flotilla',
      jwksEndpoint: `https://issuer-${serial}.test/keys`,
    }),
    values: { scopes: ['email'], clientId: 'app', externalAuthUrl: 'https://issuer.test' },
    shown: { scopes: null, clientId: null, kid: null, externalAuthUrl: null },
  },
  'posture check': {
    url: `${management}/posture-checks`,
    minimal: () => ({ name: name(), typeId: 'DOMAIN', domains: ['a.test'] }),
    values: { roleAttributes },
    inPatch: { typeId: 'DOMAIN' },
    shown: { roleAttributes: [] },
  },
}

/** An empty value of the same type. */
function emptied(value: unknown): unknown {
  if (Array.isArray(value)) return []
  return typeof value === 'string' ? '' : {}
}

test.each(Object.entries(kinds))(
  'a record of the kind %s shows a field without a value as OpenZiti does, whether the field was never set or was cleared',
  async (_, kind) => {
    const unset = await made(root, kind.url, await kind.minimal())
    const given = await made(root, kind.url, { ...(await kind.minimal()), ...kind.values })
    expect(await shown(root, `${kind.url}/${given}`)).toMatchObject(kind.values)

    const none = Object.entries(kind.values).map(([field, value]) => [field, emptied(value)])
    const patch = { ...kind.inPatch, ...Object.fromEntries(none) }
    const patched = await root.call('PATCH', `${kind.url}/${given}`, patch)
    expect(patched.status, patched.text).toBe(200)

    for (const id of [unset, given]) {
      expect(await shown(root, `${kind.url}/${id}`)).toMatchObject(kind.shown)
      const [row] = await listed(root, `${kind.url}?filter=${encodeURIComponent(`id="${id}"`)}`)
      expect(row).toMatchObject(kind.shown)
    }
  },
)

test('an identity without permissions sees null as its permissions', async () => {
  const caller = sessionOf(await newIdentity(root, name()))
  const self = await shown(caller, `${management}/current-identity`)
  expect(self['permissions']).toBe(null)
})
