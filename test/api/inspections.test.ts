import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CallerOf, fabric, management } from './support/caller.ts'
import { startController, type TestController } from './support/controller.ts'

let controller: TestController
let root: CallerOf

beforeAll(async () => {
  // High limits, because the wait for the evaluation of another caller's regular expression depends
  // on the load of the machine.
  const waits = { schemaWaitMsMax: 60_000, schemaLateMsMax: 60_000 }
  controller = await startController({ schemaMsMax: 300, ...waits })
  root = new CallerOf(controller)
  root.token = controller.openSession('admin-id')
})

afterAll(async () => {
  await controller.close()
  expect(controller.errors).toEqual([])
})

interface Told {
  readonly errors: readonly string[]
  readonly success: boolean
  readonly values: readonly { appId: string; name: string; value: unknown }[]
}

/**
 * Sends a request, and repeats it if the machine is too busy to evaluate a regular expression in
 * time.
 */
async function ask(appRegex: unknown, requestedValues: unknown, caller = root) {
  for (;;) {
    const body = { appRegex, requestedValues }
    const reply = await caller.call('POST', `${fabric}/inspections`, body)
    if (reply.status !== 503) return reply
  }
}

async function told(appRegex: string, ...names: readonly string[]): Promise<Told> {
  const reply = await ask(appRegex, names)
  expect(reply.status, reply.text).toBe(200)
  return reply.body as unknown as Told
}

describe('an inspection of a controller', () => {
  test('returns the requested values in the requested order, each once', async () => {
    const names = ['runtime', 'cluster-status', 'config', 'metrics', 'runtime']
    const { errors, success, values } = await told('.*', ...names)
    expect([errors, success]).toEqual([[], true])
    expect(values.map(({ name }) => name)).toEqual(names.slice(0, 4))
    expect(new Set(values.map(({ appId }) => appId))).toEqual(new Set(['ctrl1']))
    const [runtime, status, config, metrics] = values.map(({ value }) => value)
    expect(runtime).toMatchObject({
      version: controller.parts.version,
      clusterId: 'cluster-1',
      memoryBytes: { rss: expect.any(Number) },
    })
    expect(status).toEqual(JSON.parse(JSON.stringify(controller.parts.health().node)))
    expect(config).toMatchObject({ limits: { bodyBytesMax: 1_048_576 } })
    expect(metrics).toMatch(/^flotilla_alarms\{/m)
  })

  test('shows the members and the index of the applied state with OpenZiti’s names', async () => {
    const { values } = await told('.*', 'connected-peers', 'data-model-index')
    const [peers, index] = values.map(({ value }) => value)
    const known = controller.cluster.members()
    expect(peers).toEqual(
      known.map(({ id, address, voter, leader, version, connected }) => ({
        id,
        version,
        addr: address,
        isVoter: voter,
        isLeader: leader,
        isConnected: connected,
        isPreferredLeader: false,
        isSelf: id === 'ctrl1',
      })),
    )
    expect(known.length).toBeGreaterThan(1)
    expect(index).toEqual({
      timeline: 'cluster-1:3',
      index: controller.parts.state.appliedIndex,
    })
  })

  test.each([
    ['ctrl1', 1],
    ['^ctrl[0-9]$', 1],
    ['trl', 1],
    ['', 1],
    ['^(router|ctrl)1', 1],
    ['ctrl2', 0],
    ['^trl', 0],
    ['CTRL1', 0],
  ])('with the query %j returns %i values', async (regex, count) => {
    const { errors, success, values } = await told(regex, 'runtime')
    expect([errors, success, values.length]).toEqual([[], true, count])
  })

  test('omits unknown names without reporting an error, because OpenZiti’s CLI shows no value if a response contains errors', async () => {
    const { errors, success, values } = await told('ctrl1', 'constructor', 'runtime', 'links')
    expect([errors, success]).toEqual([[], true])
    expect(values.map(({ name }) => name)).toEqual(['runtime'])
  })

  test('returns the list of connected routers, and counts the active resources of the process by type', async () => {
    const { values } = await told('ctrl1', 'connected-routers', 'stackdump')
    expect(values).toEqual([
      { appId: 'ctrl1', name: 'connected-routers', value: [] },
      { appId: 'ctrl1', name: 'stackdump', value: expect.stringMatching(/^\w+: \d+$/m) as string },
    ])
  })

  test.each([
    ['(', ['runtime'], 'appRegex'],
    ['[z-a]', ['runtime'], 'appRegex'],
    ['a'.repeat(257), ['runtime'], 'appRegex'],
    [7, ['runtime'], 'appRegex'],
    ['x', 'runtime', 'requestedValues'],
    ['x', Array.from({ length: 17 }, () => 'a'), 'requestedValues'],
    ['x', ['a'.repeat(129)], 'requestedValues.0'],
  ])(
    'is refused for the regular expression %j and the values %j, with the name of the field',
    async (regex, names, field) => {
      const reply = await ask(regex, names)
      expect(reply.status, reply.text).toBe(400)
      expect(reply.body.error?.cause).toMatchObject({ field })
    },
  )

  test('is refused if its regular expression runs too long, and the controller serves other requests meanwhile', async () => {
    const endless = `${'(.*)*'.repeat(40)}!`
    const [first, second, other] = await Promise.all([
      ask(endless, ['runtime']),
      ask('.*', ['runtime']),
      root.get(`${management}/identities`),
    ])
    expect(first.status, first.text).toBe(400)
    const reason = expect.stringMatching(/in time/) as unknown
    expect(first.body.error?.cause).toMatchObject({ field: 'appRegex', reason })
    expect(second.status).toBe(200)
    expect(other.status).toBe(200)
    expect((await told('.*', 'runtime')).values).toHaveLength(1)
  })

  test('contains no secret and no record', async () => {
    const text = JSON.stringify(await told('.*', 'runtime', 'cluster-status', 'config', 'metrics'))
    expect(text).not.toContain(String(root.token))
    expect(text).not.toMatch(/BEGIN|alice|password(?!Hashes)/)
  })
})

describe('the permission to inspect', () => {
  test('belongs to administrators and to identities with ops.read; the permission to read every record is not enough', async () => {
    for (const [permission, status] of [
      ['ops.read', 200],
      ['ops', 200],
      ['ops.update', 401],
      ['admin_readonly', 401],
    ] as const) {
      const caller = new CallerOf(controller)
      const body = {
        name: `with ${permission}`,
        type: 'User',
        isAdmin: false,
        permissions: [permission],
      }
      const made = await root.call('POST', `${management}/identities`, body)
      expect(made.status, made.text).toBe(201)
      caller.token = controller.openSession((made.body.data as { id: string }).id)
      expect((await ask('.*', ['runtime'], caller)).status, permission).toBe(status)
    }
    expect((await ask('.*', ['runtime'], new CallerOf(controller))).status).toBe(401)
  })
})
