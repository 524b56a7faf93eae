import { describe, expect, test } from 'vitest'
import { CommandKind } from '../../proto/gen/command_pb.ts'
import { PostureReports } from '../../src/posture/posture-reports.ts'
import { LocalTopic } from './support/local-topic.ts'
import { type CallerOf, client, management, type Reply } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'

const { controller, root, sessionOf } = await controllerForFile({ postureResponsesMax: 20 })
const { parts } = controller
let serial = 0

async function created(collection: string, body: object): Promise<string> {
  serial += 1
  const reply = await root.call('POST', `${management}/${collection}`, {
    name: `${collection} ${serial}`,
    ...body,
  })
  expect(reply.status, reply.text).toBe(201)
  return (reply.body.data as { id: string }).id
}

const tell = (caller: CallerOf, response: object): Promise<Reply> =>
  caller.call('POST', `${client}/posture-response`, response)
const tellAll = (caller: CallerOf, responses: readonly object[]): Promise<Reply> =>
  caller.call('POST', `${client}/posture-response-bulk`, responses)

interface Query {
  readonly id: string
  readonly isPassing: boolean
  readonly [name: string]: unknown
}
interface PolicyQueries {
  readonly policyId: string
  readonly isPassing: boolean
  readonly postureQueries: readonly Query[]
}

/** A person with a service that the person may dial as long as the posture check passes. */
class Person {
  readonly caller: CallerOf
  readonly id: string
  readonly serviceId: string
  readonly checkId: string
  readonly policyId: string

  constructor(fields: Pick<Person, 'caller' | 'id' | 'serviceId' | 'checkId' | 'policyId'>) {
    this.caller = fields.caller
    this.id = fields.id
    this.serviceId = fields.serviceId
    this.checkId = fields.checkId
    this.policyId = fields.policyId
  }

  static async behind(check: object): Promise<Person> {
    const mark = `p${serial}`
    const id = await created('identities', {
      type: 'User',
      isAdmin: false,
      roleAttributes: [mark],
    })
    const serviceId = await created('services', {
      encryptionRequired: true,
      roleAttributes: [mark],
    })
    const checkId = await created('posture-checks', { ...check, roleAttributes: [mark] })
    const policyId = await created('service-policies', {
      type: 'Dial',
      semantic: 'AnyOf',
      identityRoles: [`#${mark}`],
      serviceRoles: [`#${mark}`],
      postureCheckRoles: [`#${mark}`],
    })
    const [edge] = [await created('edge-routers', { roleAttributes: [mark] })]
    await created('edge-router-policies', {
      semantic: 'AnyOf',
      identityRoles: [`#${mark}`],
      edgeRouterRoles: [`@${edge}`],
    })
    await created('service-edge-router-policies', {
      semantic: 'AnyOf',
      serviceRoles: [`#${mark}`],
      edgeRouterRoles: [`@${edge}`],
    })
    return new Person({ caller: sessionOf(id), id, serviceId, checkId, policyId })
  }

  dial(): Promise<Reply> {
    return this.caller.call('POST', `${client}/sessions`, { serviceId: this.serviceId })
  }

  async dialled(): Promise<string> {
    const reply = await this.dial()
    expect(reply.status, reply.text).toBe(201)
    return (reply.body.data as { id: string }).id
  }

  async queries(): Promise<PolicyQueries> {
    const reply = await this.caller.get(`${client}/services/${this.serviceId}`)
    expect(reply.status, reply.text).toBe(200)
    const [queries] = (reply.body.data as { postureQueries: PolicyQueries[] }).postureQueries
    if (queries === undefined) throw new Error('a service with a policy has its queries')
    return queries
  }

  async marker(): Promise<string> {
    const reply = await this.caller.get(`${client}/current-api-session/service-updates`)
    return (reply.body.data as { lastChangeAt: string }).lastChangeAt
  }

  async sessions(): Promise<string[]> {
    const reply = await this.caller.get(`${client}/sessions`)
    return (reply.body.data as { id: string }[]).map(({ id }) => id)
  }
}

const linux = { typeId: 'OS', operatingSystems: [{ type: 'Linux', versions: ['>=5.0.0'] }] }
const corp = { typeId: 'DOMAIN', domains: ['corp.test'] }
const agent = {
  typeId: 'PROCESS',
  process: { osType: 'Linux', path: '/agent', hashes: ['AB:CD'], signerFingerprint: '' },
}
const pair = {
  typeId: 'PROCESS_MULTI',
  semantic: 'AllOf',
  processes: ['/a', '/b'].map((path) => ({ osType: 'Linux', path })),
}

describe('a client that reports the required posture', () => {
  test.each([
    ['OS', linux, [{ typeId: 'OS', type: 'linux', version: '5.15.0-91-generic', build: 'x' }]],
    ['DOMAIN', corp, [{ typeId: 'DOMAIN', domain: 'CORP.test' }]],
    [
      'MAC',
      { typeId: 'MAC', macAddresses: ['00:1b:44:11:3a:b7'] },
      [{ typeId: 'MAC', macAddresses: ['00-1B-44-11-3A-B7'] }],
    ],
    ['PROCESS', agent, [{ typeId: 'PROCESS', path: '/agent', isRunning: true, hash: 'abcd' }]],
    [
      'PROCESS_MULTI',
      pair,
      ['/a', '/b'].map((path) => ({ typeId: 'PROCESS', path, isRunning: true })),
    ],
  ])(
    'passes a check of the type %s, sees the passed check, and may dial',
    async (_type, check, told) => {
      const person = await Person.behind(check)
      expect((await person.dial()).body.error?.code).toBe('INVALID_POSTURE')
      expect(await person.queries()).toMatchObject({ isPassing: false })
      const before = await person.marker()

      const answers = told.map((one) => ({ id: person.checkId, ...one }))
      const [single = {}] = answers
      const reply = answers.length === 1 ? await tell(person.caller, single) : null
      const bulk = reply ?? (await tellAll(person.caller, answers))
      expect(bulk.status, bulk.text).toBe(reply === null ? 200 : 201)
      expect(bulk.body.data).toEqual({ services: [] })

      const queries = await person.queries()
      expect(queries).toMatchObject({ policyId: person.policyId, isPassing: true })
      expect(queries.postureQueries).toMatchObject([{ id: person.checkId, isPassing: true }])
      expect(await person.marker()).not.toBe(before)
      await person.dialled()
    },
  )

  test('loses its service sessions as soon as a report fails a check, and its service-updates time (lastChangeAt) changes', async () => {
    const person = await Person.behind(corp)
    await tell(person.caller, { id: person.checkId, typeId: 'DOMAIN', domain: 'corp.test' })
    const session = await person.dialled()
    const [before, sessions] = [await person.marker(), await person.sessions()]
    expect(sessions).toEqual([session])
    const again = await tell(person.caller, { id: 'x', typeId: 'DOMAIN', domain: 'corp.test' })
    expect(again.status).toBe(201)
    expect([await person.marker(), await person.sessions()]).toEqual([before, [session]])

    await tell(person.caller, { id: person.checkId, typeId: 'DOMAIN', domain: 'home' })
    expect(await person.sessions()).toEqual([])
    expect(await person.marker()).not.toBe(before)
    expect((await person.dial()).status).toBe(409)
  })

  test('keeps a service session that another policy without checks also grants', async () => {
    const person = await Person.behind(corp)
    await tell(person.caller, { id: person.checkId, typeId: 'DOMAIN', domain: 'corp.test' })
    const session = await person.dialled()
    await created('service-policies', {
      type: 'Dial',
      semantic: 'AnyOf',
      identityRoles: [`@${person.id}`],
      serviceRoles: [`@${person.serviceId}`],
    })
    await tell(person.caller, { id: person.checkId, typeId: 'DOMAIN', domain: 'home' })
    expect(await person.sessions()).toEqual([session])
  })

  describe('and whose policy changes between the evaluation of its checks and the application of the log entry', () => {
    /**
     * Runs `change` when the next session has been checked and before its log entry is proposed.
     */
    const meanwhile = async (change: () => Promise<unknown>, then: () => Promise<Reply>) => {
      const { cluster } = controller
      const original = cluster.propose.bind(cluster)
      let isChanged = false
      cluster.propose = async (input) => {
        if (input.kind === CommandKind.SERVICE_SESSION_CREATE && !isChanged) {
          isChanged = true
          await change()
        }
        return await original(input)
      }
      try {
        return await then()
      } finally {
        cluster.propose = original
      }
    }

    test('is evaluated again, and admitted if it passes the current checks', async () => {
      const person = await Person.behind(corp)
      await tell(person.caller, { id: 'c', typeId: 'DOMAIN', domain: 'corp.test' })
      const check = `${management}/posture-checks/${person.checkId}`
      const renamed = { typeId: 'DOMAIN', name: `renamed ${person.checkId}` }
      const reply = await meanwhile(
        () => root.call('PATCH', check, renamed),
        () => person.dial(),
      )
      expect(reply.status, reply.text).toBe(201)
    })

    test('is refused if it fails a check whose requirement changed', async () => {
      const person = await Person.behind(corp)
      await tell(person.caller, { id: 'c', typeId: 'DOMAIN', domain: 'corp.test' })
      const check = `${management}/posture-checks/${person.checkId}`
      const reply = await meanwhile(
        () => root.call('PATCH', check, { typeId: 'DOMAIN', domains: ['other.test'] }),
        () => person.dial(),
      )
      expect(reply.body.error?.code).toBe('INVALID_POSTURE')
      expect(await person.sessions()).toEqual([])
    })

    test('is refused if it fails a check that was added', async () => {
      const person = await Person.behind(corp)
      await tell(person.caller, { id: 'c', typeId: 'DOMAIN', domain: 'corp.test' })
      const policy = await root.get(`${management}/service-policies/${person.policyId}`)
      const { postureCheckRoles } = policy.body.data as { postureCheckRoles: [string] }
      const attribute = postureCheckRoles[0].slice(1)
      const reply = await meanwhile(
        () => created('posture-checks', { ...linux, roleAttributes: [attribute] }),
        () => person.dial(),
      )
      expect(reply.body.error?.code).toBe('INVALID_POSTURE')
    })
  })

  test('obtains access only for its own identity', async () => {
    const [alice, bob] = [await Person.behind(corp), await Person.behind(corp)]
    await tell(alice.caller, { id: alice.checkId, typeId: 'DOMAIN', domain: 'corp.test' })
    expect((await bob.dial()).status).toBe(409)
    expect((await alice.dial()).status).toBe(201)
  })
})

test('the posture queries of a service show the requirements of each type of check', async () => {
  const rows = [
    [agent, { process: { osType: 'Linux', path: '/agent' }, timeout: -1, timeoutRemaining: -1 }],
    [pair, { processes: ['/a', '/b'].map((path) => ({ osType: 'Linux', path })) }],
    [
      { typeId: 'MFA', timeoutSeconds: 600, promptOnWake: true },
      { timeout: 600, timeoutRemaining: 0, promptOnWake: true, promptOnUnlock: false },
    ],
    [{ typeId: 'MFA' }, { timeout: -1, timeoutRemaining: -1, promptOnWake: false }],
  ] as const
  for (const [check, shown] of rows) {
    const person = await Person.behind(check)
    const { postureQueries } = await person.queries()
    expect(postureQueries).toMatchObject([
      { id: person.checkId, isPassing: false, queryType: check.typeId, ...shown },
    ])
  }
})

describe('the refusal of a service session', () => {
  test('lists only the failed checks, and is recorded', async () => {
    const person = await Person.behind(corp)
    await created('posture-checks', { ...linux, roleAttributes: ['other'] })
    const second = await created('posture-checks', { ...linux, name: 'a system' })
    await root.call('PATCH', `${management}/service-policies/${person.policyId}`, {
      postureCheckRoles: [`@${person.checkId}`, `@${second}`],
    })
    await tell(person.caller, { id: person.checkId, typeId: 'DOMAIN', domain: 'corp.test' })
    await tell(person.caller, { id: second, typeId: 'OS', type: 'Linux', version: '4.0.0' })
    const refused = await person.dial()
    expect(refused.status).toBe(409)
    expect(refused.body.error?.cause?.['data']).toEqual({
      [person.policyId]: [{ id: second, typeId: 'OS', isPassing: false }],
    })

    const reply = await root.get(`${management}/identities/${person.id}/failed-service-requests`)
    expect(reply.status, reply.text).toBe(200)
    expect(reply.body.data).toMatchObject([
      {
        serviceId: person.serviceId,
        sessionType: 'Dial',
        when: new Date(controller.clock.nowMs()).toISOString(),
        policyFailures: [
          {
            policyId: person.policyId,
            checks: [
              {
                postureCheckId: second,
                postureCheckName: 'a system',
                postureCheckType: 'OS',
                actualValue: { type: 'Linux', version: '4.0.0' },
                expectedValue: [{ type: 'Linux', versions: ['>=5.0.0'] }],
              },
            ],
          },
        ],
      },
    ])
  })

  test('is recorded without long requirements', async () => {
    const domains = Array.from({ length: 200 }, (_, at) => `${'d'.repeat(50)}${at}.test`)
    const person = await Person.behind({ typeId: 'DOMAIN', domains })
    expect((await person.dial()).status).toBe(409)
    const reply = await root.get(`${management}/identities/${person.id}/failed-service-requests`)
    const [request] = reply.body.data as { policyFailures: { checks: object[] }[] }[]
    expect(request?.policyFailures[0]?.checks[0]).toEqual({
      postureCheckId: person.checkId,
      postureCheckName: expect.any(String) as string,
      postureCheckType: 'DOMAIN',
    })
  })
})

describe('a posture report', () => {
  test('is shown with the identity, and is deleted with the identity’s last session', async () => {
    const person = await Person.behind(corp)
    const nowMs = controller.clock.nowMs()
    const lastUpdatedAt = new Date(nowMs).toISOString()
    await tellAll(person.caller, [
      { id: 'd', typeId: 'DOMAIN', domain: 'corp.test' },
      { id: 'o', typeId: 'OS', type: 'Linux', version: '5.0.0', build: '7' },
      { id: 'm', typeId: 'MAC', macAddresses: ['00:1B:44:11:3A:B7'] },
      {
        id: 'p',
        typeId: 'PROCESS',
        path: '/a',
        isRunning: true,
        hash: 'AA',
        signerFingerprints: ['B:B'],
      },
      { id: '0', typeId: 'ENDPOINT_STATE', woken: true },
    ])
    const shown = async (): Promise<Record<string, unknown>> => {
      const reply = await root.get(`${management}/identities/${person.id}/posture-data`)
      expect(reply.status, reply.text).toBe(200)
      return reply.body.data as Record<string, unknown>
    }
    const told = { timedOut: false, lastUpdatedAt }
    const data = await shown()
    expect(data).toMatchObject({
      domain: { ...told, postureCheckId: 'd', domain: 'corp.test' },
      os: { ...told, postureCheckId: 'o', type: 'Linux', version: '5.0.0', build: '7' },
      mac: { ...told, postureCheckId: 'm', addresses: ['001b44113ab7'] },
      processes: [
        {
          ...told,
          postureCheckId: 'p',
          binaryHash: 'aa',
          isRunning: true,
          signerFingerprints: ['bb'],
        },
      ],
    })
    expect(Object.values(data['apiSessionPostureData'] as object)).toMatchObject([
      { mfa: { passedMfa: false }, endpointState: { wokenAt: lastUpdatedAt } },
    ])
    controller.scheduler.run(parts.limits.sweepMs)
    expect((await shown())['domain']).toMatchObject({ domain: 'corp.test' })

    await person.caller.call('DELETE', `${client}/current-api-session`)
    controller.scheduler.run(parts.limits.sweepMs)
    expect(await shown()).toMatchObject({
      apiSessionPostureData: {},
      domain: { domain: '' },
      processes: [],
    })
  })

  test('takes effect on a controller that did not receive it, and is discarded when the controller that received it leaves the cluster', async () => {
    const person = await Person.behind(corp)
    const topic = new LocalTopic<Uint8Array>('ctrl2')
    const elsewhere = new PostureReports('ctrl2', topic, controller.clock)
    elsewhere.report(person.id, 's', [{ kind: 'domain', checkId: 'c', domain: 'corp.test' }])
    controller.posture.hear('ctrl2', person.id, topic.own.get(person.id))
    const session = await person.dialled()

    const sweep = async (): Promise<string[]> => {
      controller.scheduler.run(parts.limits.sweepMs)
      await new Promise((go) => setImmediate(go))
      return await person.sessions()
    }
    await sweep()
    controller.clock.advance(parts.limits.postureGraceMs)
    expect(await sweep()).toEqual([session])
    controller.posture.hear('ctrl2', person.id, undefined)
    // The client may send its posture again shortly after.
    expect(await sweep()).toEqual([session])
    expect((await person.dial()).status).toBe(409)
    controller.clock.advance(parts.limits.postureGraceMs)
    expect(await sweep()).toEqual([])
  })

  test('replaces an earlier report to another controller, even if the controller that receives the new report does not know the earlier one', async () => {
    const person = await Person.behind(corp)
    const topic = new LocalTopic<Uint8Array>('ctrl2')
    const elsewhere = new PostureReports('ctrl2', topic, controller.clock)
    elsewhere.report(person.id, 's', [{ kind: 'domain', checkId: 'c', domain: 'corp.test' }])
    const deliver = (): void =>
      controller.posture.hear('ctrl2', person.id, topic.own.get(person.id))
    for (const domain of ['home.test', 'corp.test']) {
      controller.onReachLatest = deliver
      await tell(person.caller, { id: 'c', typeId: 'DOMAIN', domain })
      controller.onReachLatest = () => undefined
      deliver()
      expect((await person.dial()).status).toBe(domain === 'corp.test' ? 201 : 409)
      topic.hear(controller.cluster.selfId, person.id, controller.posture.own.get(person.id))
      elsewhere.report(person.id, 's', [{ kind: 'domain', checkId: 'c', domain: 'gone.test' }])
    }
  })

  test('is evaluated with the current check: the leader ends sessions that do not pass a changed check', async () => {
    const person = await Person.behind(corp)
    await tell(person.caller, { id: 'c', typeId: 'DOMAIN', domain: 'corp.test' })
    await person.dialled()
    const change = { typeId: 'DOMAIN', domains: ['other.test'] }
    await root.call('PATCH', `${management}/posture-checks/${person.checkId}`, change)
    expect((await person.dial()).status).toBe(409)
    controller.clock.advance(parts.limits.postureGraceMs)
    controller.scheduler.run(parts.limits.sweepMs)
    await new Promise((go) => setImmediate(go))
    expect(await person.sessions()).toEqual([])
  })
})

test('the leader evaluates sessions again when a posture check changes, without waiting for its next periodic run', async () => {
  const person = await Person.behind(corp)
  await tell(person.caller, { id: 'c', typeId: 'DOMAIN', domain: 'corp.test' })
  controller.scheduler.run(parts.limits.sweepMs)
  await person.dialled()
  controller.clock.advance(parts.limits.postureGraceMs)
  const change = { typeId: 'DOMAIN', domains: ['other.test'] }
  await root.call('PATCH', `${management}/posture-checks/${person.checkId}`, change)
  await expect.poll(() => person.sessions()).toEqual([])
})

test('the leader applies a changed posture check to a client that keeps reporting to another controller', async () => {
  const person = await Person.behind(corp)
  const topic = new LocalTopic<Uint8Array>('ctrl2')
  const elsewhere = new PostureReports('ctrl2', topic, controller.clock)
  const tellThere = (): void => {
    elsewhere.report(person.id, 's', [{ kind: 'domain', checkId: 'c', domain: 'corp.test' }])
    controller.posture.hear('ctrl2', person.id, topic.own.get(person.id))
  }
  const sweep = async (): Promise<string[]> => {
    controller.scheduler.run(parts.limits.sweepMs)
    await new Promise((go) => setImmediate(go))
    return await person.sessions()
  }
  tellThere()
  const session = await person.dialled()
  const change = { typeId: 'DOMAIN', domains: ['other.test'] }
  controller.cluster.leader = 'ctrl2'
  await root.call('PATCH', `${management}/posture-checks/${person.checkId}`, change)
  expect(await sweep()).toEqual([session])
  controller.cluster.leader = null
  // This controller has just become leader.
  expect(await sweep()).toEqual([session])
  controller.clock.advance(parts.limits.postureGraceMs)
  tellThere()
  expect(await sweep()).toEqual([])
})

test('the service-updates time (lastChangeAt) changes when a device wakes, if the policy then requires a second factor again', async () => {
  const woken = { id: '0', typeId: 'ENDPOINT_STATE', woken: true }
  for (const [promptOnWake, moves] of [
    [true, true],
    [false, false],
  ] as const) {
    const person = await Person.behind({ typeId: 'MFA', promptOnWake })
    const before = await person.marker()
    expect((await tell(person.caller, woken)).status).toBe(201)
    expect((await person.marker()) !== before).toBe(moves)
  }
})

test('a controller that stores the maximum total size of posture reports refuses further reports', async () => {
  const person = await Person.behind(corp)
  controller.posture.isFull = true
  const reply = await tell(person.caller, { id: 'c', typeId: 'DOMAIN', domain: 'corp.test' })
  controller.posture.isFull = false
  expect([reply.status, reply.headers['retry-after']]).toEqual([429, expect.anything()])
  expect(await person.queries()).toMatchObject({ isPassing: false })
})

describe('a posture response', () => {
  const wrong: readonly (readonly [string, object, string])[] = [
    ['an unknown type', { id: 'x', typeId: 'WEATHER' }, 'typeId'],
    ['the type MFA, which clients report in another way', { id: 'x', typeId: 'MFA' }, 'typeId'],
    ['no check id', { typeId: 'DOMAIN', domain: 'x' }, 'id'],
    ['no domain in a domain report', { id: 'x', typeId: 'DOMAIN' }, 'domain'],
    ['a domain that is null', { id: 'x', typeId: 'DOMAIN', domain: null }, 'domain'],
    ['a domain that is a number', { id: 'x', typeId: 'DOMAIN', domain: 1 }, 'domain'],
    ['a domain that is too long', { id: 'x', typeId: 'DOMAIN', domain: 'd'.repeat(256) }, 'domain'],
    ['no MAC addresses', { id: 'x', typeId: 'MAC' }, 'macAddresses'],
    ['no OS version', { id: 'x', typeId: 'OS', type: 'Linux' }, 'version'],
  ]
  test.each(wrong)('with %s is refused with the name of the field', async (_what, body, field) => {
    const caller = sessionOf('alice-id')
    const reply = await tell(caller, body)
    expect(reply.status).toBe(400)
    expect(reply.body.error).toMatchObject({ code: 'COULD_NOT_VALIDATE', cause: { field } })
    const bulk = await tellAll(caller, [{ id: 'x', typeId: 'DOMAIN', domain: 'bulk' }, body])
    expect(bulk.status).toBe(400)
    expect(bulk.body.error?.cause).toMatchObject({ field: `1.${field}` })
    const shown = await root.get(`${management}/identities/alice-id/posture-data`)
    expect(shown.body.data).toMatchObject({ domain: { domain: '' } })
  })

  test('with unknown fields is accepted, and the response lists these fields as ignored', async () => {
    const reply = await tell(sessionOf('alice-id'), { id: 'x', typeId: 'PROCESS', weather: 1 })
    expect(reply.status).toBe(201)
    expect(reply.body.meta?.ignoredFields).toEqual(['weather'])
  })

  test('is refused if it has too many entries, or if it exceeds the maximum stored size', async () => {
    const caller = sessionOf('alice-id')
    const one = { id: 'x', typeId: 'DOMAIN', domain: 'd' }
    expect(
      (
        await tellAll(
          caller,
          Array.from({ length: 21 }, () => one),
        )
      ).status,
    ).toBe(400)
    const large = Array.from({ length: 20 }, (_, at) => ({
      id: 'x',
      typeId: 'PROCESS',
      path: `/${at}/${'x'.repeat(4000)}`,
    }))
    const reply = await tellAll(caller, large)
    expect(reply.status).toBe(400)
    expect(reply.body.error?.cause?.['reason']).toContain('32 KiB')
  })

  test('without a session is refused before its body is read', async () => {
    const nobody = sessionOf('alice-id')
    nobody.token = null
    expect((await tell(nobody, { id: 'x' })).status).toBe(401)
  })
})
