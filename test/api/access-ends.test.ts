import { describe, expect, test } from 'vitest'
import { CommandKind } from '../../proto/gen/command_pb.ts'
import { client, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { made, newIdentity, newService } from './support/network.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

const { controller, root, sessionOf } = await controllerForFile()
const { clock, scheduler, cluster } = controller
const { limits } = controller.parts

interface Row {
  readonly id: string
  readonly name: string
  readonly expiresAt?: string
  readonly isEnded?: boolean
  readonly roleAttributes?: readonly string[]
  readonly roleAttributesExpireAt?: Readonly<Record<string, string>>
  readonly roleAttributeEndsAt?: string
}

const after = (ms: number): string => new Date(clock.nowMs() + ms).toISOString()

/** Advances the clock, and lets the leader end access that has expired. */
async function pass(ms: number): Promise<void> {
  clock.advance(ms)
  scheduler.run(limits.accessEndMs)
  for (let turn = 0; turn < 10; turn += 1) await new Promise((go) => setImmediate(go))
  root.token = controller.openSession('admin-id')
}

async function rowAt(path: string): Promise<Row> {
  const reply = await root.get(`${management}/${path}`)
  expect(reply.status, reply.text).toBe(200)
  return reply.body.data as Row
}

async function namesOf(path: string): Promise<readonly string[]> {
  const reply = await root.get(`${management}/${path}`)
  expect(reply.status, reply.text).toBe(200)
  return (reply.body.data as Row[]).map(({ name }) => name)
}

function policyBody(name: string, rest: object = {}): object {
  const roles = { identityRoles: [`#${name}`], serviceRoles: [`#${name}`] }
  return { name, type: 'Dial', semantic: 'AnyOf', ...roles, ...rest }
}

const newPolicy = (name: string, rest: object = {}) =>
  made(root, `${management}/service-policies`, policyBody(name, rest))

describe('The expiry of a service policy', () => {
  test('is shown in UTC; the list of policies can be filtered and sorted by it', async () => {
    const end = new Date(clock.nowMs() + 7 * DAY_MS)
    const inZone = end.toISOString().replace('Z', '+00:00')
    const id = await newPolicy('sorted-b', { expiresAt: inZone })
    await newPolicy('sorted-a', { expiresAt: after(DAY_MS) })
    await newPolicy('sorted-c')
    expect(await rowAt(`service-policies/${id}`)).toMatchObject({ expiresAt: end.toISOString() })
    const none = await rowAt(`service-policies/${await newPolicy('sorted-d', { expiresAt: null })}`)
    expect([none.expiresAt, none.isEnded]).toEqual([undefined, undefined])
    const filter = encodeURIComponent(
      'name contains "sorted-" and expiresAt != null sort by expiresAt',
    )
    expect(await namesOf(`service-policies?filter=${filter}`)).toEqual(['sorted-a', 'sorted-b'])
    const soon = encodeURIComponent(
      `name contains "sorted-" and expiresAt < datetime(${after(2 * DAY_MS)})`,
    )
    expect(await namesOf(`service-policies?filter=${soon}`)).toEqual(['sorted-a'])
  })

  test.each([
    ['in the past', () => after(-1000), 'expiresAt must be in the future'],
    ['not a time', () => 'tomorrow', 'must be a time such as'],
  ])('is refused with 400 if it is %s', async (_name, end, reason) => {
    const body = policyBody('refused', { expiresAt: end() })
    const reply = await root.call('POST', `${management}/service-policies`, body)
    expect([reply.status, reply.text.includes(reason)], reply.text).toEqual([400, true])
  })

  test('ends the access at the given time but keeps the policy in the list, and can be postponed afterwards', async () => {
    await made(root, `${management}/services`, {
      name: 'wiki',
      encryptionRequired: true,
      roleAttributes: ['moved'],
    })
    await root.call('PATCH', `${management}/identities/alice-id`, { roleAttributes: ['moved'] })
    const id = await newPolicy('moved', { expiresAt: after(10 * MINUTE_MS) })
    const alice = sessionOf('alice-id')
    const services = async () => {
      const reply = await alice.get(`${client}/services`)
      return (reply.body.data as Row[]).map(({ name }) => name)
    }
    const ended = encodeURIComponent('isEnded = true')
    expect(await services()).toEqual(['wiki'])
    await pass(10 * MINUTE_MS)
    expect(await services()).toEqual([])
    expect(await rowAt(`service-policies/${id}`)).toMatchObject({ isEnded: true })
    expect(await namesOf(`service-policies?filter=${ended}`)).toEqual(['moved'])
    expect(await namesOf('identities/alice-id/service-policies')).toEqual([])

    const later = { expiresAt: after(HOUR_MS) }
    const path = `${management}/service-policies/${id}`
    expect((await root.call('PATCH', path, later)).status).toBe(200)
    expect(await services()).toEqual(['wiki'])
    const { isEnded } = await rowAt(`service-policies/${id}`)
    expect(isEnded).toBe(undefined)

    // An OpenZiti client sends only the fields that it knows.
    expect((await root.call('PUT', path, policyBody('moved'))).status).toBe(200)
    expect(await rowAt(`service-policies/${id}`)).toMatchObject(later)
    expect((await root.call('PATCH', path, { expiresAt: null })).status).toBe(200)
    expect((await rowAt(`service-policies/${id}`)).expiresAt).toBe(undefined)
  })
})

describe('The expiry of a role attribute', () => {
  const path = `${management}/identities/alice-id`

  test('is set for one attribute of an identity and shown in UTC, and identities can be filtered by it', async () => {
    const end = new Date(clock.nowMs() + DAY_MS)
    const offset = end.toISOString().replace('Z', '+00:00')
    const reply = await root.call('PATCH', path, {
      roleAttributes: ['contractors', 'staff'],
      roleAttributesExpireAt: { contractors: offset },
    })
    expect(reply.status, reply.text).toBe(200)
    expect(await rowAt('identities/alice-id')).toMatchObject({
      roleAttributes: ['contractors', 'staff'],
      roleAttributesExpireAt: { contractors: end.toISOString() },
      roleAttributeEndsAt: end.toISOString(),
    })
    const filter = encodeURIComponent(`roleAttributeEndsAt < datetime(${after(2 * DAY_MS)})`)
    expect(await namesOf(`identities?filter=${filter}`)).toEqual(['Alice'])
  })

  test('removes the attribute at the given time; afterwards a write of an outdated copy does not restore the attribute, but a write of a new expiry does', async () => {
    await pass(DAY_MS)
    const ended = await rowAt('identities/alice-id')
    expect(ended).toMatchObject({ roleAttributes: ['staff'] })
    expect(Object.keys(ended.roleAttributesExpireAt ?? {})).toEqual(['contractors'])
    const stale = { name: 'Alice', type: 'User', isAdmin: false }
    const attributes = ['contractors', 'staff']
    const reply = await root.call('PUT', path, { ...stale, roleAttributes: attributes })
    expect(reply.status, reply.text).toBe(200)
    expect((await rowAt('identities/alice-id')).roleAttributes).toEqual(['staff'])
    const renewal = { roleAttributesExpireAt: { contractors: after(HOUR_MS) } }
    expect((await root.call('PATCH', path, renewal)).status).toBe(200)
    expect((await rowAt('identities/alice-id')).roleAttributes).toEqual(attributes)
  })

  test('is refused if the identity does not have the attribute', async () => {
    const ends = { roleAttributesExpireAt: { others: after(HOUR_MS) } }
    const reply = await root.call('PATCH', path, ends)
    expect([reply.status, reply.body.error?.cause]).toMatchObject([
      400,
      { field: 'roleAttributesExpireAt.others', reason: 'others is not in roleAttributes' },
    ])
  })
})

describe('An explanation of access', () => {
  const dial = async (identityId: string, serviceId: string): Promise<unknown> => {
    const query = `identity=${identityId}&service=${serviceId}`
    const reply = await root.get(`${management}/access/explain?${query}`)
    expect(reply.status, reply.text).toBe(200)
    return (reply.body.data as readonly { readonly dial: unknown }[])[0]?.dial
  }

  test('names the time at which the access will expire or has expired', async () => {
    const [serviceId, identityId] = [
      await newService(root, 'crm', { roleAttributes: ['crm'] }),
      await newIdentity(root, 'bea', { roleAttributes: ['crm', 'others'] }),
    ]
    const [policyEnd, attributeEnd] = [after(2 * HOUR_MS), after(HOUR_MS)]
    const policyId = await newPolicy('crm', { expiresAt: policyEnd })
    expect(await dial(identityId, serviceId)).toMatchObject({ isGranted: true, endsAt: policyEnd })
    const path = `${management}/identities/${identityId}`
    await root.call('PATCH', path, { roleAttributesExpireAt: { crm: attributeEnd } })
    expect(await dial(identityId, serviceId)).toMatchObject({ endsAt: attributeEnd })
    await pass(HOUR_MS)
    const attributeEnded = {
      code: 'ROLE_ATTRIBUTE_ENDED',
      message: `Role attributes of the identity ended: #crm at ${attributeEnd}`,
      records: [{ id: identityId }],
    }
    const none = { isGranted: false, endsAt: null }
    const firstMissing = async () => {
      const { missing, ...right } = (await dial(identityId, serviceId)) as {
        readonly missing: readonly { readonly code: string }[]
      }
      return { ...right, missing: missing.filter(({ code }) => code.endsWith('_ENDED')) }
    }
    expect(await firstMissing()).toMatchObject({ ...none, missing: [attributeEnded] })
    await pass(HOUR_MS)
    await root.call('PATCH', path, { roleAttributesExpireAt: { crm: null } })
    await root.call('PATCH', path, { roleAttributes: ['crm'] })
    const policyEnded = {
      code: 'POLICY_ENDED',
      message: `The Dial policy that includes both has ended at ${policyEnd}`,
      records: [{ id: policyId }],
    }
    expect(await firstMissing()).toMatchObject({ ...none, missing: [policyEnded] })
  })
})

describe('Events about the expiry of access', () => {
  test('are published a day before, an hour before and at the expiry', async () => {
    const id = await newPolicy('announced', { expiresAt: after(2 * DAY_MS) })
    const { bus } = controller.events
    const from = bus.ring.end
    await pass(DAY_MS)
    await pass(23 * HOUR_MS)
    await pass(HOUR_MS)
    const events: unknown[] = []
    for (let at = from; at < bus.ring.end; at += 1) {
      const event = JSON.parse(bus.ring.at(at)?.text ?? '{}') as Readonly<Record<string, unknown>>
      if (event['namespace'] === 'accessEnd' && event['entity_id'] === id) events.push(event)
    }
    const common = { entity_type: 'servicePolicies', entity_name: 'announced' }
    expect(events).toMatchObject([
      { event_type: 'approaching', seconds_left: 86_400, ...common },
      { event_type: 'approaching', seconds_left: 3600, ...common },
      { event_type: 'ended', seconds_left: 0, ...common },
    ])
  })
})

describe('Controllers', () => {
  const proposals = () => cluster.proposals.filter(({ kind }) => kind === CommandKind.ACCESS_END)

  test('propose one log entry for a new expiry that is less than an hour away, and do not repeat it in the next seconds', async () => {
    await pass(0)
    cluster.proposals = []
    await newPolicy('quiet', { expiresAt: after(HOUR_MS / 2) })
    await pass(1000)
    await pass(1000)
    expect(proposals()).toHaveLength(1)
    await pass(1000)
    expect(proposals(), 'no alarm for an expiry that is near').toHaveLength(1)
  })

  test('do not propose the end of access early if the clock of one controller is ahead of the majority', async () => {
    await newPolicy('ahead', { expiresAt: after(HOUR_MS) })
    await pass(0)
    cluster.proposals = []
    cluster.clockMs = clock.nowMs()
    clock.jump(2 * HOUR_MS)
    cluster.aheadMs = -2 * HOUR_MS
    await pass(0)
    expect(proposals()).toEqual([])
    clock.jump(-2 * HOUR_MS)
    cluster.clockMs = undefined
    cluster.aheadMs = 0
  })
})
