import { expect, test } from 'vitest'
import { LogInThrottle } from '../../src/auth/log-in/log-in-throttle.ts'
import {
  type PasswordHashCaller,
  hashPassword,
  PasswordVerifier,
} from '../../src/auth/factors/password-verifier.ts'
import { Problem } from '../../src/lib/problems.ts'
import { addressShareKey } from '../../src/lib/bounds/source-network.ts'
import { ManualClock } from '../api/support/manual-time.ts'

const bob = from('10.0.0.2')

function from(address: string): PasswordHashCaller & { isGone: boolean } {
  return { sharer: addressShareKey(address), isGone: false }
}

test('a password is hashed by Argon2id with 19 MiB, two passes, and a random salt', async () => {
  const [first, second] = await Promise.all([
    hashPassword('correct horse'),
    hashPassword('correct horse'),
  ])
  expect(first).toMatch(/^\$argon2id\$v=19\$m=19456,p=1,t=2\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
  expect(second).not.toBe(first)
})

test('only the right password matches a stored hash', async () => {
  const hash = await hashPassword('correct horse')
  const verifier = new PasswordVerifier({ atOnceMax: 2, waitingMax: 8 })
  expect(await verifier.verify(bob, hash, 'correct horse')).toBe(true)
  expect(await verifier.verify(bob, hash, 'Correct horse')).toBe(false)
  expect(await verifier.verify(bob, null, 'correct horse')).toBe(false)
  expect(await verifier.verify(bob, 'no PHC string', 'correct horse')).toBe(false)
})

test('log-ins above the queue limit are refused, and the queued ones are processed', async () => {
  const verifier = new PasswordVerifier({ atOnceMax: 1, waitingMax: 2 })
  const results = await Promise.allSettled(
    Array.from({ length: 5 }, () => verifier.verify(bob, null, 'whatever')),
  )
  const refused = results.filter((result) => result.status === 'rejected')
  expect(refused).toHaveLength(2)
  for (const { reason } of refused) {
    expect((reason as Problem).code).toBe('SERVER_TOO_MANY_REQUESTS')
    expect((reason as Problem).retryAfterSeconds).toBe(1)
  }
  expect(await verifier.verify(bob, null, 'whatever')).toBe(false)
})

test('the log-in of a caller that disconnected while it waited is neither counted nor hashed, and the next caller is served', async () => {
  const verifier = new PasswordVerifier({ atOnceMax: 1, waitingMax: 8 })
  const hash = await hashPassword('correct horse')
  const reserved: string[] = []
  const tried = (by: PasswordHashCaller): Promise<boolean> =>
    verifier.verify(by, hash, 'correct horse', () => {
      reserved.push(by.sharer)
      return Promise.resolve(true)
    })
  const gone = from('10.0.0.3')
  const first = tried(bob)
  const dropped = codeOf(tried(gone))
  const next = tried(from('10.0.0.4'))
  gone.isGone = true
  expect(await Promise.all([first, dropped, next])).toEqual([true, 'TIMEOUT', true])
  expect(reserved).toEqual([bob.sharer, 'from 10.0.0.4'])
  expect(await tried(bob)).toBe(true)
})

const limits = {
  failuresMax: 10,
  pauseMsMin: 1000,
  pauseMsMax: 60_000,
  sourcesMax: 3,
  attemptsMax: 64,
}
const fails = (): Promise<null> => Promise.resolve(null)

async function codeOf(attempt: Promise<unknown>): Promise<string> {
  return attempt.then(
    () => 'let through',
    (error: unknown) => (error as Problem).code,
  )
}

test('after ten failures in a row, a user name is blocked for one source for at most a minute, longer each time', async () => {
  const clock = new ManualClock()
  const throttle = new LogInThrottle(limits, clock)
  for (let failure = 0; failure < 10; failure += 1) await throttle.attempt('eve', '10.0.0.1', fails)
  let pauseMs = 1000
  for (let round = 0; round < 9; round += 1) {
    clock.advance(pauseMs - 1)
    expect(await codeOf(throttle.attempt('eve', '10.0.0.1', fails))).toBe(
      'SERVER_TOO_MANY_REQUESTS',
    )
    clock.advance(1)
    expect(await codeOf(throttle.attempt('eve', '10.0.0.1', fails))).toBe('let through')
    pauseMs = Math.min(pauseMs * 2, 60_000)
  }
})

test('failures of a source and user name do not block other sources and names, and a successful log-in resets them', async () => {
  const throttle = new LogInThrottle(limits, new ManualClock())
  for (let failure = 0; failure < 9; failure += 1) await throttle.attempt('eve', '10.0.0.1', fails)
  expect(await throttle.attempt('eve', '10.0.0.1', () => Promise.resolve('in'))).toBe('in')
  for (let failure = 0; failure < 10; failure += 1) await throttle.attempt('eve', '10.0.0.1', fails)
  expect(await codeOf(throttle.attempt('eve', '10.0.0.1', fails))).toBe('SERVER_TOO_MANY_REQUESTS')
  expect(await codeOf(throttle.attempt('eve', '10.0.0.2', fails))).toBe('let through')
  expect(await codeOf(throttle.attempt('bob', '10.0.0.1', fails))).toBe('let through')
})

test('addresses in one IPv6 /64 network count as one source of guesses', async () => {
  const throttle = new LogInThrottle(limits, new ManualClock())
  for (let failure = 0; failure < 10; failure += 1) {
    await throttle.attempt('eve', `2001:db8:0:1::${failure}`, fails)
  }
  expect(await codeOf(throttle.attempt('eve', '2001:db8::1:a:b:c:d', fails))).toBe(
    'SERVER_TOO_MANY_REQUESTS',
  )
  expect(await codeOf(throttle.attempt('eve', '2001:db8:0:2::1', fails))).toBe('let through')
})

test('a burst of guesses cannot exceed the limit while the first guesses are still being hashed', async () => {
  const throttle = new LogInThrottle(limits, new ManualClock())
  await throttle.attempt('eve', '10.0.0.1', fails)
  const release: (() => void)[] = []
  const slow = (): Promise<null> => new Promise((resolve) => release.push(() => resolve(null)))
  const burst = Array.from({ length: 50 }, () => codeOf(throttle.attempt('eve', '10.0.0.1', slow)))
  for (const free of release) free()
  const codes = await Promise.all(burst)
  expect(codes.filter((code) => code === 'let through')).toHaveLength(9)
})

test('guesses at the same time count toward the limit before any of them has failed', async () => {
  const throttle = new LogInThrottle(limits, new ManualClock())
  const release: (() => void)[] = []
  const slow = (): Promise<null> => new Promise((resolve) => release.push(() => resolve(null)))
  const burst = Array.from({ length: 50 }, () => codeOf(throttle.attempt('eve', '10.0.0.1', slow)))
  for (const free of release) free()
  const codes = await Promise.all(burst)
  expect(codes.filter((code) => code === 'let through')).toHaveLength(10)
})

test('the refusal of a log-in after many failed log-ins, or during many others, contains the reason and the waiting time', async () => {
  const clock = new ManualClock()
  const throttle = new LogInThrottle({ ...limits, failuresMax: 2, attemptsMax: 2 }, clock)
  const told = (name: string): Promise<string | null> =>
    throttle.attempt(name, '10.0.0.1', fails).then(
      () => null,
      (error: unknown) => (error as Problem).detail,
    )
  for (let failure = 0; failure < 3; failure += 1) {
    await told('eve')
    if (failure < 2) clock.advance(failure * 1000)
  }
  expect(await told('eve')).toBe('too many failed log-ins from this source; retry in 2 s')
  const held = Promise.withResolvers<null>()
  const other = throttle.attempt('bob', '10.0.0.1', () => held.promise)
  const more = throttle.attempt('carol', '10.0.0.1', () => held.promise)
  expect(await told('dave')).toBe('too many concurrent log-ins from this source; retry in 1 s')
  held.resolve(null)
  await Promise.all([other, more.catch(() => null)])
})

test('a log-in whose password was never hashed does not count as a failure', async () => {
  const throttle = new LogInThrottle(limits, new ManualClock())
  const busy = (): Promise<null> => Promise.reject(new Problem('CLUSTER_NO_LEADER'))
  for (let attempt = 0; attempt < 20; attempt += 1) {
    expect(await codeOf(throttle.attempt('eve', '10.0.0.1', busy))).toBe('CLUSTER_NO_LEADER')
  }
})

test('one source cannot fill the queue of log-ins for all others', async () => {
  const throttle = new LogInThrottle({ ...limits, attemptsMax: 8 }, new ManualClock())
  const release: (() => void)[] = []
  const slow = (): Promise<string> => new Promise((resolve) => release.push(() => resolve('in')))
  const eager = Array.from({ length: 8 }, (_, i) =>
    codeOf(throttle.attempt(`name ${i}`, '10.0.0.1', slow)),
  )
  const other = codeOf(throttle.attempt('bob', '10.0.0.2', slow))
  for (const free of release) free()
  const codes = await Promise.all(eager)
  expect(codes.filter((code) => code === 'let through')).toHaveLength(6)
  expect(await other).toBe('let through')
})
