import { expect, test } from 'vitest'

import { CallerOf, client, type Reply } from '../api/support/caller.ts'
import { user } from '../api/support/controller.ts'
import { controllerForFile } from '../api/support/for-file.ts'

// The attack: somebody without an account tries names, and learns from the responses which of them
// exist.

const { controller } = await controllerForFile()

interface Try {
  readonly reply: Reply
  /** Processor time of all threads, because other processes affect only the elapsed time. */
  readonly tookMs: number
}

async function tried(username: string, at: number): Promise<Try> {
  const caller = new CallerOf(controller)
  caller.address = `10.1.${at}.1`
  const before = process.cpuUsage()
  const body = { username, password: 'a guess that is wrong' }
  const reply = await caller.call('POST', `${client}/authenticate?method=password`, body)
  const { user, system } = process.cpuUsage(before)
  return { reply, tookMs: (user + system) / 1000 }
}

/** Parts of a response that must be equal for all requests. */
function seen({ status, headers, text, body }: Reply): unknown {
  const names = Object.keys(headers).sort()
  const size = text.length - (body.error?.requestId.length ?? 0)
  const { code, message } = body.error ?? {}
  return { status, names, size, code, message, cause: body.error?.cause }
}

/** The minimum, on which other work of this process has the least influence. */
const quickest = (tries: readonly Try[]): number => Math.min(...tries.map(({ tookMs }) => tookMs))

test('a wrong password gets the same response after similar work, whether the user name exists, is disabled or is unknown', async () => {
  const kinds = { known: [] as Try[], disabled: [] as Try[], unknown: [] as Try[] }
  for (let at = 0; at < 7; at += 1) {
    kinds.known.push(await tried(user.username, at))
    kinds.disabled.push(await tried('mallory', at))
    kinds.unknown.push(await tried(`nobody${at}`.slice(0, user.username.length + 2), at))
  }
  const all = Object.values(kinds).flat()
  const [first] = all.map(({ reply }) => seen(reply))
  for (const { reply } of all) expect(seen(reply)).toEqual(first)
  expect(first).toMatchObject({ status: 401, code: 'INVALID_AUTH' })
  // Without a password hash, the response for a name would come at least five times sooner.
  const known = quickest(kinds.known)
  for (const other of [quickest(kinds.disabled), quickest(kinds.unknown)]) {
    expect(other).toBeGreaterThan(known / 3)
    expect(other).toBeLessThan(known * 3)
  }
})
