import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { FABRIC_API_PATH, MANAGEMENT_API_PATH } from '../../../src/client/cluster-client.ts'
import { allKinds, type RecordKind } from '../../../src/cli/records/kinds.ts'
import { newCa } from '../../support/authorities.ts'
import { Administrator } from '../client/support.ts'

// Goal: every record of the management API can be created, shown, changed and deleted from a
// terminal, only by names.

let person: Administrator
beforeAll(async () => {
  person = await Administrator.loggedIn()
  const { certificatePem } = await newCa('plant', Date.now())
  person.file('plant.pem', certificatePem)
  person.file('signer.pem', (await newCa('signer', Date.now())).certificatePem)
  person.secret('a-password', 'a staple of berta')
  person.secret('secret', 'c2VjcmV0')
  for (const words of prepared) await person.out('create', ...words.split(' '))
})
afterAll(() => person.close())

/** Records to which the records below refer. */
const prepared = [
  'identity name=berta',
  'identity name=bill',
  'service name=wiki encryptionRequired=true',
  'edge-router name=gate',
  'config-type name=anything',
]

interface Example {
  /**
   * The name of the record and the words that create it; FOLDER is replaced with the folder of the
   * files.
   */
  readonly create: string
  readonly update?: string
  /** Values that the list must show afterwards. */
  readonly shows: RegExp
}

const examples: Readonly<Record<string, Example>> = {
  'auth-policy': {
    create: 'name=strict primary.updb.minPasswordLength=12 secondary.requireTotp=true',
    update: 'primary.updb.maxAttempts=3 tags.owner=ops',
    shows: /^strict /m,
  },
  authenticator: {
    create: 'method=updb identity=berta username=berta password@FOLDER/a-password',
    update: 'username=berta2',
    shows: /updb +berta +berta2/,
  },
  ca: {
    create:
      'name=plant certPem@FOLDER/plant.pem identityRoles=pumps,plant isAuthEnabled=true isAutoCaEnrollmentEnabled=false isOttCaEnrollmentEnabled=true',
    update: 'externalIdClaim.location=COMMON_NAME',
    shows: /^plant .* plant pumps /m,
  },
  config: {
    create: 'name=data configType=anything data={"a":{"b":1}}',
    update: 'data={"a":2}',
    shows: /^data +\S+ +anything/m,
  },
  'config-type': {
    create: 'name=numbers schema={"type":"object"} target=service',
    update: 'name=digits',
    shows: /^digits +\S+ +service/m,
  },
  'controller-setting': {
    create: 'controllerId=ctrl1 oidc.redirectUris=https://a.test/',
    update: 'oidc.redirectUris=https://b.test/',
    shows: /^ctrl1$/m,
  },
  'edge-router': {
    create: 'name=edge roleAttributes=public isTunnelerEnabled=true appData.site=a',
    update: 'noTraversal=true appData.rack=7',
    shows: /^edge +\S+ +no +no +public +0 +no/m,
  },
  'edge-router-policy': {
    create: 'name=all semantic=AnyOf identityRoles=#all edgeRouterRoles=@gate',
    update: 'identityRoles=@berta,#staff',
    shows: /^all +\S+ +AnyOf +#staff @berta +@gate/m,
  },
  enrollment: {
    create: 'method=ott identity=bill expiresAt=2126-01-01T00:00:00Z',
    shows: / ott .*bill/,
  },
  'external-jwt-signer': {
    create:
      'name=idp enabled=true issuer=https://idp.test audience=net certPem@FOLDER/signer.pem enrollAuthPolicy=Default',
    update: 'enabled=false claimsProperty=/email',
    shows: /^idp /m,
  },
  identity: {
    create: 'name=anna roleAttributes=b,a serviceHostingCosts.wiki=3 tags.location=here',
    update: 'roleAttributes=c serviceHostingCosts={"wiki":4} authPolicy=Default',
    shows: /^anna +\S+ +no +Default +- +c /m,
  },
  'posture-check': {
    create: 'name=domain typeId=DOMAIN domains=corp.test roleAttributes=office',
    update: 'domains=corp.test,lab.test',
    shows: /^domain +\S+ +DOMAIN +office +.*corp\.test lab\.test/m,
  },
  revocation: { create: `id=${randomUUID()} type=JTI`, shows: / JTI / },
  router: { create: 'name=core', update: 'disabled=true', shows: /^core +\S+ +no +no +0 +yes/m },
  service: {
    create: 'name=web encryptionRequired=true roleAttributes=intranet',
    update: 'terminatorStrategy=weighted tags={"a":1}',
    shows: /^web +\S+ +yes +weighted +0 +- +intranet/m,
  },
  'service-edge-router-policy': {
    create: 'name=any semantic=AllOf serviceRoles=#all edgeRouterRoles=#all',
    update: 'serviceRoles=@wiki',
    shows: /^any +\S+ +AllOf +@wiki +#all/m,
  },
  'service-policy': {
    create: 'name=dial type=Dial semantic=AnyOf serviceRoles=@wiki',
    update: 'type=Bind identityRoles=@berta',
    shows: /^dial +\S+ +Bind +AnyOf +@berta +@wiki +-/m,
  },
  terminator: {
    create:
      'service=wiki router=gate binding=transport address=tcp:wiki.test:80 identitySecret@FOLDER/secret',
    update: 'cost=7',
    shows: /transport +tcp:wiki\.test:80 +7 +default +wiki +gate/,
  },
  'transit-router': {
    create: 'name=transit',
    update: 'cost=9',
    shows: /^transit +\S+ +no +no +9/m,
  },
}

const creatable = allKinds().filter(({ shapes }) => shapes.create !== undefined)

test('every kind of record that can be created has an example in the test data', () => {
  expect(Object.keys(examples)).toEqual(creatable.map(({ name }) => name))
})

describe.each(creatable.map((kind) => [kind.name, kind] as const))(
  'the commands for records of the kind %s',
  (name, kind) => {
    const { create, update, shows } = examples[name] ?? { create: '', shows: /$^/ }

    test('create, list, show, change and delete a record', async () => {
      const words = create.replaceAll('FOLDER', person.folder).split(' ')
      const made = JSON.parse(await person.out('create', name, ...words, '--json')) as {
        id: string
      }
      expect(made.id).not.toBe('')
      const own = ownName(kind, words, made.id)
      if (update !== undefined) {
        expect(await person.out('update', name, own, ...update.split(' '))).toMatch(/^updated /)
      }
      const called = update?.startsWith('name=') === true ? update.slice('name='.length) : own
      expect(await person.out('list', kind.plural, '--all')).toMatch(shows)
      const shown = JSON.parse(await person.out('get', name, called, '-o', 'json')) as {
        id: string
      }
      expect(shown.id).toBe(made.id)
      expect(await person.out('list', name, '--all', '-o', 'name')).toContain(`${called}\n`)
      if (kind.shapes.delete === undefined) return
      const asked = await person.run('delete', name, called)
      expect([asked.code, asked.stderr]).toEqual([2, expect.stringMatching(/add --yes$/m)])
      expect(await person.out('delete', name, called, '--yes')).toMatch(/^deleted /)
      const gone = await person.run('get', name, called)
      expect([gone.code, gone.stderr]).toEqual([4, expect.stringMatching(/^flotilla: no /)])
    })
  },
)

function ownName({ hasName }: RecordKind, words: readonly string[], id: string): string {
  const given = words.find((word) => word.startsWith('name='))
  return hasName && given !== undefined ? given.slice('name='.length) : id
}

test('the command line shows the ID of a referenced record that has no name', async () => {
  const found = await person.out('list', 'api-sessions', '-o', 'json')
  const [session] = JSON.parse(found) as readonly { readonly authenticatorId: string }[]
  const sessions = await person.out('list', 'api-sessions')
  expect(sessions).toMatch(new RegExp(`Default Admin +${session?.authenticatorId ?? 'none'} `))
})

test('each kind of record that cannot be created can be listed, and an identity type can be shown', async () => {
  const readOnly = allKinds().filter(({ shapes }) => shapes.create === undefined)
  expect(readOnly.map(({ name }) => name)).toEqual([
    'api-session',
    'circuit',
    'controller',
    'identity-type',
    'link',
    'posture-check-type',
    'session',
  ])
  for (const { name } of readOnly) expect((await person.run('list', name)).code, name).toBe(0)
  expect(await person.out('list', 'as')).toMatch(/Default Admin/)
  expect(await person.out('list', 'controllers')).toMatch(/^ctrl2 /m)
  expect(await person.out('get', 'identity-type', 'Router')).toMatch(/^name: Router$/m)
})

test('the commands for records use only operations of the API, and cover each of its collections', async () => {
  const { app } = person.cluster.controller
  const operationsAt = async (api: string): Promise<string[]> => {
    const document = (await app.inject(`${api}/openapi.json`)).json<{
      paths: Record<string, Record<string, unknown>>
    }>()
    return Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method} ${path}`),
    )
  }
  const [managed, live] = Map.groupBy(allKinds(), ({ api }) => api).values()
  const served = new Set(await operationsAt(MANAGEMENT_API_PATH))
  const offeredBy = (kinds: readonly RecordKind[]): string[] =>
    kinds.flatMap(({ plural, shapes }) =>
      Object.keys(shapes).map((shape) => {
        const below = plural === 'controller-settings' && shape !== 'detail' ? '/effective' : ''
        if (shape === 'list') return `get /${plural}`
        if (shape === 'create') return `post /${plural}`
        return `${shape === 'detail' ? 'get' : shape} /${plural}/{id}${below}`
      }),
    )
  expect(offeredBy(managed ?? []).filter((one) => !served.has(one))).toEqual([])
  const ofFabric = await operationsAt(FABRIC_API_PATH)
  expect(offeredBy(live ?? []).toSorted()).toEqual(
    ofFabric.filter((one) => /^\w+ \/(links|circuits)/.test(one)).toSorted(),
  )
  const collections = [...served].flatMap((one) => {
    const [, plural] = /^(?:get|post) \/([a-z-]+)$/.exec(one) ?? []
    return plural !== undefined && served.has(`get /${plural}/{id}`) ? [plural] : []
  })
  const known = new Set(allKinds().map(({ plural }) => plural))
  expect([...new Set(collections)].filter((one) => !known.has(one))).toEqual(['specs'])
})
