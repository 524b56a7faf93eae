import { beforeAll, describe, expect, test } from 'vitest'

import { mfaLimits } from '../../../src/fsm/apply/authentication.ts'
import { codeOf as timeBased } from '../../support/totp.ts'
import type { Answer } from '../support/client.ts'
import type { TestCluster } from '../support/cluster.ts'
import { codeOf, dataOf, Enrolling } from '../support/enrolling.ts'
import { sharedCluster } from '../support/shared-cluster.ts'

// Goal: if one controller verifies a second factor, it is valid on all; if a code is used on one
// controller, it is used on all. Method: three real processes, over TLS. Each step uses another
// controller than the previous one, and identifies it by its number. Of the time-based codes, the
// tests use the current one and the next one, so that no test waits for a time step.

const STEP_MS = 30_000
const password = 'a password of its own'
const mfa = '/current-identity/mfa'

let cluster: TestCluster
let net: Enrolling
beforeAll(async () => {
  cluster = sharedCluster()
  net = await Enrolling.on(cluster)
})

/** A user with a password, and with an authenticator app after MFA setup has begun. */
class Person {
  readonly id: string
  readonly username: string
  url = ''
  recoveryCodes: readonly string[] = []

  private constructor(id: string, username: string) {
    this.id = id
    this.username = username
  }

  static async known(k: number): Promise<Person> {
    const name = net.newName('person')
    const id = await net.make(k, '/identities', { name, type: 'User', isAdmin: false })
    const credential = { identityId: id, method: 'updb', username: name, password }
    await net.make((k % 3) + 1, '/authenticators', credential)
    return new Person(id, name)
  }

  /** Begins MFA setup on `k` and verifies it on the next controller with the current code. */
  static async withMfa(k: number): Promise<Person> {
    const person = await Person.known(k)
    const token = await person.logIn((k % 3) + 1)
    await person.begin(k, token)
    dataOf(await person.verify((k % 3) + 1, token))
    return person
  }

  /** @returns the token of a new session. */
  async logIn(k: number): Promise<string> {
    return String(dataOf(await net.logInByPassword(k, this.username, password))['token'])
  }

  async begin(k: number, token: string): Promise<void> {
    dataOf(await net.device(k, 'POST', mfa, { token }), 201)
    const headers = net.asOfAnswers()
    const detail = dataOf(await net.device((k % 3) + 1, 'GET', mfa, { token, headers }))
    expect(detail['isVerified']).toBe(false)
    this.url = String(detail['provisioningUrl'])
    this.recoveryCodes = detail['recoveryCodes'] as string[]
  }

  verify(k: number, token: string, code = this.code()): Promise<Answer> {
    const headers = net.asOfAnswers()
    return net.device(k, 'POST', `${mfa}/verify`, { token, body: { code }, headers })
  }

  code(stepsLater = 0): string {
    return timeBased(this.url, Date.now() + stepsLater * STEP_MS)
  }

  recoveryCode(at: number): string {
    return this.recoveryCodes[at] ?? ''
  }
}

function give(k: number, token: string, code: string): Promise<Answer> {
  return net.device(k, 'POST', '/authenticate/mfa', { token, body: { code } })
}

/**
 * Requests of a full session, sent to all three controllers at the same time without requesting a
 * minimal index.
 */
async function statuses(token: string): Promise<number[]> {
  const answers = [1, 2, 3].map((k) => net.identity(k, token))
  return (await Promise.all(answers)).map(({ status }) => status)
}

const full = [200, 200, 200]
const partial = [401, 401, 401]

async function isMfaEnabled(k: number, { id }: Person): Promise<unknown> {
  return (await net.shown(k, `/identities/${id}`))['isMfaEnabled']
}

describe('An MFA enrollment', () => {
  test('that is started on one controller can be restarted and verified on others, and is then enabled on all', async () => {
    const person = await Person.known(1)
    const token = await person.logIn(3)
    expect(dataOf(await net.session(1, token))).toMatchObject({ isMfaRequired: false })
    await person.begin(1, token)
    const first = person.url
    await person.begin(2, token)
    expect(person.url).not.toBe(first)
    const old = await person.verify(1, token, timeBased(first, Date.now()))
    expect([old.status, codeOf(old)]).toEqual([400, 'MFA_INVALID_TOKEN'])
    dataOf(await person.verify(3, token))
    for (const k of [1, 2, 3]) {
      expect(await isMfaEnabled(k, person)).toBe(true)
      const again = await net.device(k, 'POST', mfa, { token })
      expect([again.status, codeOf(again)]).toEqual([409, 'MFA_EXISTS'])
    }
    expect(await statuses(token)).toEqual(full)
  })

  test('that its holder removes on one controller requires no code on any controller', async () => {
    const person = await Person.withMfa(1)
    const token = await person.logIn(2)
    dataOf(await give(3, token, person.recoveryCode(0)))
    const wrong = { 'mfa-validation-code': person.recoveryCode(0) }
    expect((await net.device(1, 'DELETE', mfa, { token, headers: wrong })).status).toBe(400)
    const right = { 'mfa-validation-code': person.recoveryCode(1) }
    dataOf(await net.device(2, 'DELETE', mfa, { token, headers: right }))
    expect(await statuses(await person.logIn(3))).toEqual(full)
    expect(await isMfaEnabled(1, person)).toBe(false)
  })

  test('that an administrator removes on one controller makes partially authenticated sessions fully authenticated on every controller', async () => {
    const person = await Person.withMfa(2)
    const token = await person.logIn(3)
    expect(await statuses(token)).toEqual(partial)
    dataOf(await net.ask(1, 'DELETE', `/identities/${person.id}/mfa`))
    expect(await statuses(token)).toEqual(full)
    expect((await net.device(2, 'GET', mfa, { token })).status).toBe(404)
  })
})

describe('An API session', () => {
  test('is partially authenticated on every controller until one of them verifies a code, and fully on all at the next request', async () => {
    const person = await Person.withMfa(3)
    const token = await person.logIn(1)
    expect(await statuses(token)).toEqual(partial)
    const authQueries = [expect.objectContaining({ typeId: 'MFA', isTotpEnrolled: true })]
    const lacking = { isMfaRequired: true, isMfaComplete: false, authQueries }
    for (const k of [1, 2, 3]) expect(dataOf(await net.session(k, token))).toMatchObject(lacking)
    const next = person.code(1)
    dataOf(await give(2, token, next))
    expect(await statuses(token)).toEqual(full)
    const complete = { isMfaRequired: true, isMfaComplete: true, authQueries: [] }
    expect(dataOf(await net.session(3, token))).toMatchObject(complete)
    const other = await person.logIn(3)
    expect(codeOf(await give(1, other, next))).toBe('MFA_INVALID_TOKEN')
    dataOf(await give(3, other, person.recoveryCode(4)))
    expect(await statuses(other)).toEqual(full)
    dataOf(await net.device(1, 'DELETE', '/current-api-session', { token: other }))
    expect(await statuses(other)).toEqual(partial)
  })

  test('becomes partially authenticated on any controller once its policy requires a code, and fully authenticated once the policy does not', async () => {
    const person = await Person.known(2)
    const token = await person.logIn(3)
    const { primary } = await net.shown(1, '/auth-policies/default')
    const rules = { name: net.newName('policy'), primary, secondary: { requireTotp: false } }
    const policy = await net.make(1, '/auth-policies', rules)
    dataOf(await net.ask(2, 'PATCH', `/identities/${person.id}`, { authPolicyId: policy }))
    for (const requireTotp of [true, false]) {
      dataOf(await net.ask(3, 'PATCH', `/auth-policies/${policy}`, { secondary: { requireTotp } }))
      for (const k of [1, 2, 3]) {
        const shown = dataOf(await net.session(k, token))
        expect(shown).toMatchObject({ isMfaRequired: requireTotp, isMfaComplete: false })
      }
      expect(await statuses(token)).toEqual(requireTotp ? partial : full)
    }
  })
})

describe('MFA recovery codes', () => {
  test('that are used or replaced on one controller are refused on all, and each controller shows the remaining ones', async () => {
    const person = await Person.withMfa(1)
    const token = await person.logIn(1)
    dataOf(await give(2, token, person.recoveryCode(0)))
    const used = await give(3, token, person.recoveryCode(0))
    expect([used.status, codeOf(used)]).toEqual([400, 'MFA_INVALID_TOKEN'])
    const codes = `${mfa}/recovery-codes`
    const body = { code: person.recoveryCode(1) }
    dataOf(await net.device(1, 'POST', codes, { token, body }))
    expect((await give(2, token, person.recoveryCode(2))).status).toBe(400)
    const headers = { 'mfa-validation-code': person.code(1) }
    const view = dataOf(await net.device(3, 'GET', codes, { token, headers }))
    const [fresh = '', ...others] = view['recoveryCodes'] as string[]
    expect(others).toHaveLength(19)
    dataOf(await give(1, token, fresh))
    expect((await give(2, token, fresh)).status).toBe(400)
  })
})

describe('An MFA code', () => {
  test('that is sent to two controllers at the same moment completes exactly one session, whether it is a time-based code or a recovery code', async () => {
    const person = await Person.withMfa(2)
    const codes = [person.code(1), ...person.recoveryCodes.slice(0, 6)]
    for (const [at, code] of codes.entries()) {
      const [one, other] = [(at % 3) + 1, ((at + 1) % 3) + 1]
      const tokens = await Promise.all([person.logIn(one), person.logIn(other)])
      const answers = await Promise.all([give(one, tokens[0], code), give(other, tokens[1], code)])
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 400])
    }
  })

  test('is protected against guesses by a limit of attempts on all controllers together', async () => {
    const person = await Person.withMfa(3)
    const token = await person.logIn(2)
    const guesses = Array.from({ length: 3 * mfaLimits.attemptsMax }, (_, at) => at)
    const answers = await Promise.all(guesses.map((at) => give((at % 3) + 1, token, 'wrong!')))
    const count = (status: number): number => answers.filter((one) => one.status === status).length
    expect([count(400), count(429)]).toEqual([mfaLimits.attemptsMax, 2 * mfaLimits.attemptsMax])
    const right = await give(1, token, person.recoveryCode(0))
    expect([right.status, Number(right.headers['retry-after']) > 0]).toEqual([429, true])
  })
})
