import { afterAll, beforeAll, expect, test } from 'vitest'

import { Administrator } from '../client/support.ts'

let person: Administrator
beforeAll(async () => {
  person = await Administrator.loggedIn()
  for (const line of [
    'posture-check name=office typeId=DOMAIN domains=office.test',
    'identity name=laptop roleAttributes=sales',
    'service name=crm encryptionRequired=true roleAttributes=apps',
    'service name=crm-test encryptionRequired=true',
    'edge-router name=gate',
    'service-policy name=dial-crm type=Dial semantic=AnyOf identityRoles=#sales serviceRoles=@crm,#apps postureCheckRoles=@office',
    'edge-router-policy name=sales semantic=AnyOf identityRoles=@laptop edgeRouterRoles=@gate',
    'service-edge-router-policy name=all semantic=AnyOf serviceRoles=#all edgeRouterRoles=#all',
    'terminator service=crm router=gate binding=transport address=tcp:10.0.0.1:80',
  ]) {
    await person.out('create', ...line.split(' '))
  }
})
afterAll(() => person.close())

test('access explain prints, for a pair of identity and service, each policy with its roles, and the missing conditions', async () => {
  expect(await person.out('access', 'explain', 'laptop', 'crm')).toBe(`laptop -> crm
dial: granted, unreachable
  policy dial-crm: #sales -> #apps @crm (AnyOf)
    posture check office (DOMAIN): unknown, no API session
  missing NO_LOG_IN: The identity has no authenticator
  missing NO_ROUTER_ONLINE: No edge router that they have in common is online (0 of 1): gate
  missing NO_TERMINATOR_ONLINE: No terminator of the service is at a router that is online (0 of 1)
bind: no
  missing NO_LOG_IN: The identity has no authenticator
  missing NO_POLICY_OF_IDENTITY: No Bind policy includes the identity (its role attributes: #sales)
  missing NO_POLICY_OF_SERVICE: No Bind policy includes the service (its role attributes: #apps)
  missing NO_ROUTER_ONLINE: No edge router that they have in common is online (0 of 1): gate
edge routers: gate (offline)
  edge router policy sales: @laptop -> @gate (AnyOf)
  service edge router policy all: #all -> #all (AnyOf)
terminators:
  tcp:10.0.0.1:80 at gate (offline)
`)
})

test('access explain prints one line for each pair of identity and service if only one of the two is given', async () => {
  const services = await person.out('access', 'explain', 'laptop')
  expect(services.split('\n').slice(0, 3)).toEqual([
    'service   dial                  bind  first missing',
    expect.stringMatching(/^crm(-test)? +(granted, unreachable|no) +no +The identity has no authe/),
    expect.stringMatching(/^crm(-test)? +(granted, unreachable|no) +no +The identity has no authe/),
  ])
  const granted = await person.out(
    'access',
    'explain',
    '--service',
    'crm',
    '--granted',
    '-o',
    'json',
  )
  const pairs = JSON.parse(granted) as readonly { readonly identity: { readonly name: string } }[]
  expect(pairs.map(({ identity }) => identity.name)).toEqual(['laptop'])
  const limited = await person.run('access', 'explain', 'laptop', '--limit', '1')
  expect(limited.stderr).toBe('flotilla: 1 of 2; --limit shows more\n')
})

test('access explain refuses an invalid query with the reason in the first line', async () => {
  const refusal = async (...words: string[]): Promise<string> => {
    const { code, stderr } = await person.run('access', 'explain', ...words)
    return `${code} ${stderr.split('\n')[0] ?? ''}`
  }
  expect(await refusal()).toContain('2 flotilla: name an identity, a service, or both')
  expect(await refusal('laptop', 'crm', '--granted')).toMatch(/^2 .*need one side alone/)
  expect(await refusal('nobody', 'crm')).toMatch(/^4 .*not found/)
})
