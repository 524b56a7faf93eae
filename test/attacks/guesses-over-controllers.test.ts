import type { FastifyInstance } from 'fastify'
import { afterAll, expect, test } from 'vitest'
import { buildApi } from '../api/support/build-api.ts'
import { management } from '../api/support/caller.ts'
import { user } from '../api/support/controller.ts'
import { controllerForFile } from '../api/support/for-file.ts'

const { controller, root } = await controllerForFile()

/** Three controllers of one cluster with separate memory and a shared log. */
const apps: FastifyInstance[] = [0, 1, 2].map(() => buildApi({ ...controller.parts }))
afterAll(() => Promise.all(apps.map((app) => app.close())))

const maxAttempts = 3

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

test('guesses of one password at the same time through several controllers and sources are limited to the number in the policy', async () => {
  await Promise.all(apps.map((app) => app.ready()))
  const reply = await root.call('PATCH', `${management}/auth-policies/default`, {
    primary: { updb: { maxAttempts, lockoutDurationMinutes: 0 } },
  })
  expect(reply.status).toBe(200)
  const guesses = await Promise.all(
    Array.from({ length: 4 * maxAttempts }, (_, at) => logInAt(at, `guess number ${at}`)),
  )
  expect(new Set(guesses)).toEqual(new Set([401]))
  const rightOnes = [0, 1, 2].map((at) => logInAt(at, user.password))
  expect(await Promise.all(rightOnes)).toEqual([401, 401, 401])
})
