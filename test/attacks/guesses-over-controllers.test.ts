import type { FastifyInstance } from 'fastify'
import { afterAll, expect, test } from 'vitest'
import { CommandKind } from '../../proto/gen/command_pb.ts'
import type { ProposalInput } from '../../src/ports/proposer.ts'
import { buildApi } from '../api/support/build-api.ts'
import { management } from '../api/support/caller.ts'
import { user } from '../api/support/controller.ts'
import { controllerForFile } from '../api/support/for-file.ts'

const { controller, root } = await controllerForFile()

/** Three controllers of one cluster with separate memory and a shared log. */
const apps: FastifyInstance[] = [0, 1, 2].map(() => buildApi({ ...controller.parts }))
afterAll(() => Promise.all(apps.map((app) => app.close())))

const maxAttempts = 2

async function logInAt(at: number, password: string): Promise<number> {
  const app = apps[at % apps.length]
  const { username } = user
  const reply = await app?.inject({
    method: 'POST',
    url: `${management}/authenticate?method=password`,
    remoteAddress: `10.0.0.${at}`,
    payload: { username, password },
  })
  return reply?.statusCode ?? 0
}

function addressOf({ actor }: ProposalInput): string {
  return actor.case === 'system' ? actor.value.address : ''
}

test('guesses of one password at the same time through several controllers and sources are limited to the number in the policy', async () => {
  await Promise.all(apps.map((app) => app.ready()))
  const reply = await root.call('PATCH', `${management}/auth-policies/default`, {
    primary: { updb: { maxAttempts, lockoutDurationMinutes: 0 } },
  })
  expect(reply.status).toBe(200)
  const count = 6 * maxAttempts
  const { cluster } = controller
  const propose = cluster.propose.bind(cluster)
  const held = new Map<string, () => void>()
  let isHeld = true
  // Each controller begins a check before it knows of the checks at the others.
  cluster.propose = (input) => {
    if (!isHeld || input.kind !== CommandKind.PASSWORD_ATTEMPT) return propose(input)
    return new Promise((resolve, reject) => {
      held.set(addressOf(input), () => {
        propose(input).then(resolve, reject)
      })
      if (held.size < apps.length) return
      isHeld = false
      for (const address of [...held.keys()].sort()) held.get(address)?.()
    })
  }
  // Any guess after the first ones is refused without a check, even if it is right.
  const guess = (at: number): string => (at < maxAttempts ? `guess ${at}` : user.password)
  const guesses = await Promise.all(
    Array.from({ length: count }, (_, at) => logInAt(at, guess(at))),
  )
  cluster.propose = propose
  expect(new Set(guesses)).toEqual(new Set([401]))
  expect(controller.state.get('passwordAttempts', 'alice-updb')).toMatchObject({
    count: maxAttempts,
  })
  expect([...controller.state.table('apiSession').indexes.ids('identityId', 'alice-id')]).toEqual(
    [],
  )
  const rightOnes = [0, 1, 2].map((at) => logInAt(at, user.password))
  expect(await Promise.all(rightOnes)).toEqual([401, 401, 401])
})
