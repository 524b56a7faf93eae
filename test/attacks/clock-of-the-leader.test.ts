import { afterEach, describe, expect, test } from 'vitest'
import { CommandKind } from '../../proto/gen/command_pb.ts'
import { client, CallerOf, management } from '../api/support/caller.ts'
import { user } from '../api/support/controller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { giveCode, turnOnMfa } from '../api/support/mfa.ts'
import { made, newIdentity, newService } from '../api/support/network.ts'
import { OidcClient } from '../api/support/oidc.ts'

// The attack: an attacker changes the clock of one controller through its time server: that of the
// leader, which then ends old sessions permanently. The clocks of the other controllers, and thus
// log time, stay correct.

const minute = 60_000
const DAY_MS = 24 * 60 * minute

const { controller, root, sessionOf } = await controllerForFile()
const { clock, cluster, scheduler } = controller
const { limits } = controller.parts
let jumpedMs = 0

/**
 * @param isNoticed true: this controller has received the different time of a majority's clocks.
 */
function jump(ms: number, isNoticed: boolean): void {
  clock.jump(ms)
  jumpedMs = ms
  cluster.aheadMs = -ms
  if (isNoticed) cluster.clockMs = clock.nowMs() - ms
}

/**
 * Runs all periodic tasks of a leader for as long as it waits after an election, at the correct
 * time.
 */
async function sweep(ms = 2 * minute): Promise<void> {
  for (let passedMs = 0; passedMs <= ms; passedMs += 30_000) {
    clock.advance(30_000)
    if (cluster.clockMs !== undefined) cluster.clockMs = clock.nowMs() - jumpedMs
    scheduler.run(limits.sweepMs)
    if (passedMs % limits.activityLogMs === 0) scheduler.run(limits.activityLogMs)
    for (let turn = 0; turn < 10; turn += 1) await new Promise((go) => setImmediate(go))
  }
}

/** Number of log entries with which the leader tried to end sessions. */
function expiries(): number {
  return cluster.proposals.filter(({ kind }) => kind === CommandKind.SESSION_EXPIRE).length
}

afterEach(() => {
  clock.jump(-jumpedMs)
  jumpedMs = 0
  cluster.aheadMs = 0
  cluster.clockMs = undefined
  root.token = controller.openSession('admin-id')
})

describe.each([
  ['while the leader knows the clocks of the other controllers', true],
  ['before the leader knows the clocks of the other controllers', false],
])('A leader whose clock is a day ahead (%s)', (_when, isNoticed) => {
  test('ends no session that is in use', async () => {
    const alice = new CallerOf(controller)
    expect((await alice.logIn(user, client)).status).toBe(200)
    cluster.proposals = []
    jump(DAY_MS, isNoticed)
    await sweep()
    clock.jump(-jumpedMs)
    jumpedMs = 0
    expect(expiries() > 0).toBe(!isNoticed)
    expect((await alice.get(`${client}/current-identity`)).status).toBe(200)
  })
})

test('A leader whose clock is ahead ends sessions when log time reaches their expiry', async () => {
  await new CallerOf(controller).logIn(user, client)
  jump(DAY_MS, true)
  await sweep(limits.sessionTimeoutMs + 3 * minute)
  expect(controller.state.table('apiSession').indexes.ids('identityId', 'alice-id').size).toBe(0)
})

test.each([
  ['once its clock is correct again', true],
  ['while its clock is ahead', false],
])(
  'A leader ends an unused session that was opened while the leader’s clock was ahead (%s)',
  async (_when, isRight) => {
    jump(DAY_MS, true)
    const alice = new CallerOf(controller)
    expect((await alice.logIn(user, client)).status).toBe(200)
    if (isRight) {
      clock.jump(-DAY_MS)
      jumpedMs = 0
      cluster.aheadMs = 0
    }
    await sweep(2 * limits.activityLogMs + limits.sessionTimeoutMs + 3 * minute)
    expect(controller.state.table('apiSession').indexes.ids('identityId', 'alice-id').size).toBe(0)
  },
)

test('A controller whose clock was ahead shares session activity with the others again once its clock is corrected', async () => {
  jump(20 * minute, true)
  await root.get(`${management}/current-api-session`)
  scheduler.run(limits.activityFlushMs)
  clock.jump(-20 * minute)
  jumpedMs = 0
  cluster.clockMs = undefined
  clock.advance(minute)
  scheduler.run(limits.activityLogMs)
  clock.advance(2 * minute)
  await root.get(`${management}/current-api-session`)
  scheduler.run(limits.activityFlushMs)
  expect([...controller.activity.own.values()]).toContain(clock.nowMs())
})

test('A leader whose clock is ahead does not end service sessions, although by its clock their second factor has timed out', async () => {
  const id = await newIdentity(root, 'bob', { roleAttributes: ['mfa'] })
  const roles = { semantic: 'AnyOf', identityRoles: ['#mfa'] }
  const serviceId = await newService(root, 'mail', { roleAttributes: ['mfa'] })
  const check = { name: 'code', typeId: 'MFA', timeoutSeconds: 1800, roleAttributes: ['mfa'] }
  await made(root, `${management}/posture-checks`, check)
  await made(root, `${management}/service-policies`, {
    name: 'by code',
    ...roles,
    type: 'Dial',
    serviceRoles: ['#mfa'],
    postureCheckRoles: ['#mfa'],
  })
  const edgeRouterRoles = ['#all']
  await made(root, `${management}/edge-routers`, { name: 'router' })
  await made(root, `${management}/edge-router-policies`, { name: 'all', ...roles, edgeRouterRoles })
  const services = { semantic: 'AnyOf', serviceRoles: ['#mfa'], edgeRouterRoles }
  await made(root, `${management}/service-edge-router-policies`, { name: 'all', ...services })
  const app = await turnOnMfa(controller, sessionOf(id))
  const bob = sessionOf(id)
  expect((await giveCode(bob, app.freshCode())).status).toBe(200)
  await made(bob, `${client}/sessions`, { serviceId })
  jump(DAY_MS, true)
  await sweep()
  expect(controller.state.table('session').indexes.ids('identityId', id).size).toBe(1)
})

test('A controller whose clock is ahead does not end the session of a client that repeats its last refresh token', async () => {
  const oidc = new OidcClient(controller)
  const { refresh_token: first } = await oidc.logIn(user.username, user.password)
  const second = String((await oidc.refresh(first)).json['refresh_token'])
  expect((await oidc.refresh(second)).status).toBe(200)
  jump(10 * minute, true)
  expect((await oidc.refresh(second)).status).toBe(200)
})
