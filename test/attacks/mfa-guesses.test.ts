import type { FastifyInstance } from 'fastify'
import { afterAll, expect, test } from 'vitest'
import { CommandKind } from '../../proto/gen/command_pb.ts'
import { buildApi } from '../api/support/build-api.ts'
import { mfaLimits } from '../../src/fsm/apply/authentication.ts'
import { client } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { giveCode, turnOnMfa } from '../api/support/mfa.ts'

const { controller, sessionOf } = await controllerForFile()

/** Three controllers of one cluster with separate memory and a shared log. */
const apps: FastifyInstance[] = [0, 1, 2].map(() => buildApi({ ...controller.parts }))
afterAll(() => Promise.all(apps.map((app) => app.close())))

const guesses = 4 * mfaLimits.attemptsMax

test('a session gets no more guesses of an MFA code if it repeats its own valid code between guesses', async () => {
  const session = sessionOf('admin-id')
  const authenticator = await turnOnMfa(controller, session)
  const code = authenticator.freshCode()
  expect((await giveCode(session, code)).status).toBe(200)
  const wrong = authenticator.wrongCode()
  const statuses: number[] = []
  for (let guess = 1; guess <= guesses; guess += 1) {
    statuses.push((await giveCode(session, wrong)).status)
    if (guess % (mfaLimits.attemptsMax - 2) === 0) await giveCode(session, code)
  }
  expect(statuses.filter((status) => status === 400)).toHaveLength(mfaLimits.attemptsMax)
  expect(statuses.slice(mfaLimits.attemptsMax).every((status) => status === 429)).toBe(true)
})

test('guesses of an MFA code at the same time through several controllers, sessions and sources have one common limit', async () => {
  await Promise.all(apps.map((app) => app.ready()))
  const authenticator = await turnOnMfa(controller, sessionOf('alice-id'))
  const wrong = authenticator.wrongCode()
  const { cluster } = controller
  const propose = cluster.propose.bind(cluster)
  const held: (() => void)[] = []
  // All guesses are made before any controller receives the entry about a guess at another
  // controller.
  cluster.propose = (input) => {
    if (input.kind !== CommandKind.MFA_ATTEMPT) return propose(input)
    return new Promise((resolve, reject) => {
      held.push(() => {
        propose(input).then(resolve, reject)
      })
      if (held.length === guesses) for (const go of held) go()
    })
  }
  const statuses = await Promise.all(
    Array.from({ length: guesses }, async (_, at) => {
      const reply = await apps[at % apps.length]?.inject({
        method: 'POST',
        url: `${client}/authenticate/mfa`,
        remoteAddress: `10.0.0.${at}`,
        headers: { 'net-session': sessionOf('alice-id').token ?? '' },
        payload: { code: wrong },
      })
      return reply?.statusCode
    }),
  )
  cluster.propose = propose
  expect(statuses.filter((status) => status === 400)).toHaveLength(mfaLimits.attemptsMax)
  expect(statuses.filter((status) => status === 429)).toHaveLength(guesses - mfaLimits.attemptsMax)
  // Even the correct code is refused, in a session from any source.
  expect((await giveCode(sessionOf('alice-id'), authenticator.code(1))).status).toBe(429)
})
