import { expect, test } from 'vitest'
import { createServices } from '../../src/api/services.ts'
import type { LogInCredential } from '../../src/auth/log-in/log-in.ts'
import type { CallerCredentials } from '../../src/auth/principal/credentials.ts'
import { requirePresent } from '../../src/lib/assert.ts'
import { parseTraceparent } from '../../src/lib/trace-context.ts'
import type { Idempotency } from '../../src/ports/writer.ts'
import { user } from '../api/support/controller.ts'
import { controllerForFile } from '../api/support/for-file.ts'

// The log-in functions take values and return values, independent of HTTP.
const { controller } = await controllerForFile()
const { logIns, gate } = createServices(controller.parts)
const turn = { sharer: 'from 10.0.0.7', isGone: false }
const right: LogInCredential = { by: 'password', ...user }

function shown(more: Partial<CallerCredentials> = {}): CallerCredentials {
  return {
    address: '10.0.0.7',
    source: '10.0.0.7',
    sessionToken: undefined,
    peerChain: () => null,
    bearers: () => [],
    hostUser: null,
    ...more,
  }
}

/** A request that waits for a write, and the outcome that it received. */
function request(): { write: Parameters<typeof logIns.open>[3]; told: (Idempotency | null)[] } {
  const told: (Idempotency | null)[] = []
  return {
    told,
    write: {
      trace: parseTraceparent(undefined),
      idempotency: { case: 'id', id: new Uint8Array(16), bodyHash: () => new Uint8Array(32) },
      isAbandoned: () => false,
      onProposed: (idempotency) => told.push(idempotency),
      onOutcome: () => undefined,
    },
  }
}

test('a correct password is accepted, and the session of the log-in is valid', async () => {
  const proof = await logIns.prove(right, shown(), turn)
  if ('code' in proof) throw new Error(`refused with ${proof.code}`)
  expect(proof).toMatchObject({ identityId: 'alice-id', authenticator: { id: 'alice-updb' } })

  const { write, told } = request()
  const { principal, token } = await logIns.open(proof, shown(), { api: 'client' }, write)
  expect(principal).toMatchObject({ kind: 'session', address: '10.0.0.7', permission: 'partial' })
  // If the request ID were stored, the log would keep a hash over the password.
  expect(told).toEqual([{ case: 'notKept' }])

  const wanted = { api: 'client', method: 'GET', permission: 'session' } as const
  expect(await gate.admit(shown({ sessionToken: token }), wanted)).toMatchObject({
    isAdmitted: true,
    principal: { kind: 'session', permission: 'session', session: { id: principal.session.id } },
  })
})

test.each<[string, LogInCredential, object]>([
  [
    'a wrong password',
    { by: 'password', username: user.username, password: 'a guess' },
    { code: 'INVALID_AUTH', challenge: null, cause: { reason: 'PASSWORD_WRONG' } },
  ],
  [
    'a name that no identity has',
    { by: 'password', username: 'nemo', password: 'a guess' },
    { code: 'INVALID_AUTH', challenge: null, cause: { reason: 'USERNAME_UNKNOWN' } },
  ],
  [
    'no certificate',
    { by: 'cert' },
    { code: 'INVALID_AUTH', challenge: null, cause: { reason: 'CERTIFICATE_MISSING' } },
  ],
  [
    'no bearer token',
    { by: 'ext-jwt' },
    {
      code: 'UNAUTHORIZED',
      challenge: { realm: 'openziti-primary-ext-jwt', error: 'missing', signers: [] },
      cause: { reason: 'TOKEN_MISSING' },
    },
  ],
])('a log-in with %s is refused, and writes nothing', async (_, credential, refusal) => {
  const { write, told } = request()
  expect(await logIns.prove(credential, shown(), turn)).toEqual(refusal)
  const about = { api: 'client' } as const
  expect(await logIns.logIn(credential, shown(), about, { write, turn })).toEqual(refusal)
  expect(told).toEqual([])
})

test('no session opens if the password changes after it was verified', async () => {
  const proof = await logIns.prove(right, shown(), turn)
  if ('code' in proof) throw new Error(`refused with ${proof.code}`)
  const authenticator = requirePresent(proof.authenticator, 'the password of alice')
  const old = { ...proof, authenticator: { ...authenticator, revision: 0 } }
  const { write } = request()
  await expect(logIns.open(old, shown(), { api: 'client' }, write)).rejects.toMatchObject({
    code: 'REVISION_MOVED',
  })
})
