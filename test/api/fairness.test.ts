import { expect, test } from 'vitest'
import { Problem, type ProblemCode, problemTypes } from '../../src/lib/problems.ts'
import { problemResponse } from '../../src/api/http/responses/problem-response.ts'
import { CallerOf, management, type Reply } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'

const { controller } = await controllerForFile({ waitingRequestsMax: 16 })

test('a caller that sends writes continuously gets 429 with Retry-After, and other callers can still write', async () => {
  const { cluster } = controller
  const propose = cluster.propose.bind(cluster)
  const release: (() => void)[] = []
  cluster.propose = (input) =>
    new Promise((resolve, reject) => {
      release.push(() => {
        propose(input).then(resolve, reject)
      })
    })
  const eager = new CallerOf(controller)
  const other = new CallerOf(controller)
  // The first request loads the document against which responses are checked, so that the
  // concurrent requests do not load it.
  for (const caller of [eager, other]) await caller.get(`${management}/version`)
  eager.token = controller.openSession('admin-id')
  const body = { name: 'second admin', type: 'User', isAdmin: true }
  const making = eager.call('POST', `${management}/identities`, body)
  await expect.poll(() => release.length).toBe(1)
  release.shift()?.()
  other.token = controller.openSession(((await making).body.data as { id: string }).id)
  const write = (caller: CallerOf, i: number): Promise<Reply> => {
    const service = {
      name: `service ${caller === eager ? 'e' : 'o'}${i}`,
      encryptionRequired: true,
    }
    return caller.call('POST', `${management}/services`, service)
  }
  const first = Array.from({ length: 16 }, (_, i) => write(eager, i))
  await expect.poll(() => release.length).toBe(12)
  const others = Array.from({ length: 4 }, (_, i) => write(other, i))
  await expect.poll(() => release.length).toBe(16)
  for (const free of release) free()
  const replies = await Promise.all(first)
  expect(replies.filter(({ status }) => status === 201)).toHaveLength(12)
  for (const reply of replies.filter(({ status }) => status !== 201)) {
    expect(reply.status).toBe(429)
    expect(reply.body.error?.code).toBe('SERVER_TOO_MANY_REQUESTS')
    expect(reply.headers['retry-after']).toBe('1')
  }
  for (const reply of await Promise.all(others)) expect(reply.status).toBe(201)
  cluster.propose = propose
})

test('every temporary refusal with status 429 or 503 has Retry-After, and other refusals have it only if the error sets a time', () => {
  for (const code of Object.keys(problemTypes) as ProblemCode[]) {
    const { http, retry } = problemTypes[code]
    const passes = retry !== 'never' && (http === 429 || http === 503)
    expect(problemResponse(new Problem(code)).retryAfterSeconds, code).toBe(passes ? 1 : null)
    const said = new Problem(code, { retryAfterSeconds: 30 })
    expect(problemResponse(said).retryAfterSeconds, code).toBe(30)
  }
})
