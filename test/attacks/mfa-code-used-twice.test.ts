import type { FastifyInstance } from 'fastify'
import { afterAll, expect, test } from 'vitest'
import { CommandKind } from '../../proto/gen/command_pb.ts'
import { buildApi } from '../api/support/build-api.ts'
import { client } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { turnOnMfa } from '../api/support/mfa.ts'

const { controller, sessionOf } = await controllerForFile()

/** Two controllers of one cluster. */
const apps: FastifyInstance[] = [0, 1].map(() => buildApi({ ...controller.parts }))
afterAll(() => Promise.all(apps.map((app) => app.close())))

/** Makes both controllers verify the code before the log contains the first use. */
async function atOnce(give: (app: FastifyInstance, at: number) => Promise<number>) {
  const { cluster } = controller
  const propose = cluster.propose.bind(cluster)
  const held: (() => void)[] = []
  cluster.propose = (input) => {
    if (input.kind !== CommandKind.MFA_PROVE) return propose(input)
    return new Promise((resolve, reject) => {
      held.push(() => {
        propose(input).then(resolve, reject)
      })
      if (held.length === apps.length) for (const go of held) go()
    })
  }
  const statuses = await Promise.all(apps.map(give))
  cluster.propose = propose
  return statuses.sort()
}

/** Sends the code to a different controller for each session. */
function giveTo(tokens: readonly (string | null)[], code: string) {
  return async (app: FastifyInstance, at: number): Promise<number> => {
    await app.ready()
    const reply = await app.inject({
      method: 'POST',
      url: `${client}/authenticate/mfa`,
      headers: { 'net-session': tokens[at] ?? '' },
      payload: { code },
    })
    return reply.statusCode
  }
}

test('a TOTP code that one session has used is refused in every other session, also in one that has used an earlier code', async () => {
  const [first, second] = [sessionOf('alice-id'), sessionOf('alice-id')]
  const app = await turnOnMfa(controller, first)
  const give = async (by: typeof first, code: string): Promise<number> =>
    (await by.call('POST', `${client}/authenticate/mfa`, { code })).status
  expect(await give(second, app.freshCode())).toBe(200)
  const overheard = app.freshCode()
  expect(await give(first, overheard)).toBe(200)
  expect(await give(second, overheard)).toBe(400)
  expect(await give(sessionOf('alice-id'), overheard)).toBe(400)
  expect(await give(first, overheard)).toBe(200)
  const headers = { 'mfa-validation-code': app.freshCode() }
  const ended = await first.call('DELETE', `${client}/current-identity/mfa`, undefined, headers)
  expect(ended.status).toBe(200)
})

test('a session that has used a recovery code cannot use a TOTP code that another session has used', async () => {
  const [first, second] = [sessionOf('alice-id'), sessionOf('alice-id')]
  const app = await turnOnMfa(controller, first)
  const give = async (by: typeof first, code: string): Promise<number> =>
    (await by.call('POST', `${client}/authenticate/mfa`, { code })).status
  const overheard = app.freshCode()
  expect(await give(first, overheard)).toBe(200)
  const [recoveryCode = ''] = app.recoveryCodes
  expect(await give(second, recoveryCode)).toBe(200)
  expect(await give(second, overheard)).toBe(400)
  const headers = { 'mfa-validation-code': app.freshCode() }
  await first.call('DELETE', `${client}/current-identity/mfa`, undefined, headers)
})

test('if two controllers receive the same TOTP code at the same time, only one of them accepts the code', async () => {
  const app = await turnOnMfa(controller, sessionOf('alice-id'))
  const sessions = apps.map(() => sessionOf('alice-id'))
  const code = app.freshCode()
  const tokens = sessions.map(({ token }) => token)
  expect(await atOnce(giveTo(tokens, code))).toEqual([200, 400])
  const full = await Promise.all(sessions.map((one) => one.get(`${client}/current-identity`)))
  expect(full.map(({ status }) => status).sort()).toEqual([200, 401])
  await sessions[0]?.call('DELETE', `${client}/current-identity/mfa`)
})

test('if two controllers receive the same recovery code at the same time, only one of them accepts the code', async () => {
  const app = await turnOnMfa(controller, sessionOf('admin-id'))
  const sessions = apps.map(() => sessionOf('admin-id'))
  const tokens = sessions.map(({ token }) => token)
  const [code = ''] = app.recoveryCodes
  expect(await atOnce(giveTo(tokens, code))).toEqual([200, 400])
  const full = await Promise.all(sessions.map((one) => one.get(`${client}/current-identity`)))
  expect(full.map(({ status }) => status).sort()).toEqual([200, 401])
})
