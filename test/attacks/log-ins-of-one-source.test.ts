import { expect, test } from 'vitest'

import { CommandKind } from '../../proto/gen/command_pb.ts'
import { management } from '../api/support/caller.ts'
import { admin, user } from '../api/support/controller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { until } from './support/listener.ts'

// The attack: an attacker without an account sends so many log-ins that everyone else waits until
// the last password has been hashed.

const room = 16
const { controller, root } = await controllerForFile({
  logInsMax: room,
  passwordHashesWaitingMax: room,
})
const { cluster } = controller

async function logInFrom(remoteAddress: string, payload: object): Promise<number> {
  const url = `${management}/authenticate?method=password`
  const reply = await controller.app.inject({ method: 'POST', url, remoteAddress, payload })
  return reply.statusCode
}

test('a log-in from one source is served before most log-ins of a flood from another source', async () => {
  // The first attempt waits in the log until all others are in the queue.
  const primary = { updb: { maxAttempts: 50, lockoutDurationMinutes: 0 } }
  await root.call('PATCH', `${management}/auth-policies/default`, { primary })
  const held = Promise.withResolvers<null>()
  const { propose } = cluster
  cluster.propose = async (input) => {
    if (input.kind === CommandKind.PASSWORD_ATTEMPT) await held.promise
    return propose.call(cluster, input)
  }
  const statuses: number[] = []
  const guesses = Array.from({ length: 2 * room }, async (_, at) => {
    const username = at === 0 ? user.username : `name ${at}`
    statuses.push(await logInFrom('10.0.0.1', { username, password: 'some guess' }))
  })
  // The attacker uses the whole capacity that one source may use.
  await until(() => statuses.length === 2 * room - room * 0.75)
  expect(new Set(statuses)).toEqual(new Set([429]))
  const refused = statuses.length
  const rounds = cluster.readRounds
  const other = logInFrom('10.0.0.2', admin).then((status) => ({
    status,
    before: statuses.length - refused,
  }))
  await until(() => cluster.readRounds === rounds + 1)
  held.resolve(null)
  const { status, before } = await other
  await Promise.all(guesses)
  expect(status).toBe(200)
  expect(before).toBeLessThan(4)
})
