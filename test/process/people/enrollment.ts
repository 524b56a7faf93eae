import { beforeAll, describe, expect, test } from 'vitest'

import type { CertificateWithKey } from '../../../src/pki/authority/authority.ts'
import { formatUuid, newUuidv7 } from '../../../src/lib/text/uuid.ts'
import type { Answer } from '../support/client.ts'
import type { TestCluster } from '../support/cluster.ts'
import {
  certifiedBy,
  certifiedKey,
  codeOf,
  dataOf,
  type Detail,
  Enrolling,
  fingerprintOf,
  newRequest,
  newRouterKeys,
} from '../support/enrolling.ts'
import { sharedCluster } from '../support/shared-cluster.ts'

// Goal: if an identity enrolls at one controller, all controllers accept it, and a session or
// credential that one controller revoked works on no other. Method: three real processes, over TLS.
// Each step uses another controller than the previous one, and identifies it by its number.

const password = 'a password of its own'

let cluster: TestCluster
let net: Enrolling
beforeAll(async () => {
  cluster = sharedCluster()
  net = await Enrolling.on(cluster)
})

/** Sends the same request to all controllers at the same time. */
function everywhere(ask: (k: number) => Promise<Answer>): Promise<Answer[]> {
  return Promise.all([1, 2, 3].map(ask))
}

async function expectEverywhere(
  status: number,
  ask: (k: number) => Promise<Answer>,
): Promise<void> {
  for (const [at, answer] of (await everywhere(ask)).entries()) {
    expect(answer.status, `controller ${at + 1}: ${answer.text}`).toBe(status)
  }
}

const refusedEverywhere = (by: CertificateWithKey): Promise<void> =>
  expectEverywhere(401, (k) => net.logIn(k, by))

/** An identity with a certificate of the network, enrolled at controller `k` and the next one. */
async function newDevice(k: number): Promise<{ identityId: string; by: CertificateWithKey }> {
  const { identityId, token } = await net.outstanding(k, { ott: true })
  const request = await newRequest()
  const { cert } = dataOf(await net.ott((k % 3) + 1, token, request))
  return { identityId, by: certifiedKey(request, cert) }
}

describe('The client certificate of an identity', () => {
  test('that enrolled on one controller can log in on another and be extended on a third; it is valid until the new certificate is verified', async () => {
    const { identityId, by } = await newDevice(1)
    const session = dataOf(await net.logIn(3, by))
    expect(session).toMatchObject({ identityId, isCertExtendable: true })
    const { token, authenticatorId } = session as Record<string, string>
    const request = await newRequest()
    const extending = { by, token: token ?? '', authenticatorId: authenticatorId ?? '' }
    const extended = dataOf(await net.extend(1, extending, request))
    const next = certifiedKey(request, extended['clientCert'])
    await expectEverywhere(200, (k) => net.logIn(k, by))
    await refusedEverywhere(next)
    dataOf(await net.verifyExtension(2, extending, next.certificatePem))
    await refusedEverywhere(by)
    await expectEverywhere(200, (k) => net.logIn(k, next))
    await expectEverywhere(200, (k) => net.session(k, extending.token, next))
    const renewed = { ...extending, by: next }
    const again = await net.verifyExtension(3, renewed, next.certificatePem)
    expect(again.status, again.text).toBe(409)
  })

  test('is refused on every controller while the identity is disabled, and so are the sessions of the identity', async () => {
    const { identityId, by } = await newDevice(2)
    const { token } = dataOf(await net.logIn(1, by)) as { token: string }
    await expectEverywhere(200, (k) => net.session(k, token, by))
    dataOf(await net.ask(2, 'POST', `/identities/${identityId}/disable`, { durationMinutes: 0 }))
    await refusedEverywhere(by)
    await expectEverywhere(401, (k) => net.session(k, token, by))
    dataOf(await net.ask(3, 'POST', `/identities/${identityId}/enable`))
    await expectEverywhere(200, (k) => net.logIn(k, by))
    await expectEverywhere(401, (k) => net.session(k, token))
  })
})

describe('The certificates of a router', () => {
  test('that were enrolled on one controller can be extended on another; the new ones replace them everywhere, and a re-enrollment requires a new token', async () => {
    const { id, token } = await net.router(1)
    const keys = await newRouterKeys(id)
    const enrolled = dataOf(await net.erott(2, token, keys))
    expect(dataOf(await net.erott(3, token, keys)), 'requested again').toMatchObject(enrolled)
    const first = certifiedKey(keys.client, enrolled['cert'])
    const pending = dataOf(await net.extendRouter(3, first, keys))
    expect(dataOf(await net.extendRouter(1, first, keys)), 'the response was lost').toEqual(pending)
    const before = await net.shown(1, `/edge-routers/${id}`)
    expect(before).toMatchObject({ isVerified: true, fingerprint: fingerprintOf(first) })
    const next = certifiedKey(keys.client, pending['cert'])
    const last = certifiedKey(keys.client, dataOf(await net.extendRouter(2, next, keys))['cert'])
    await expectEverywhere(401, (k) => net.extendRouter(k, first, keys))
    const shown = await net.shown(1, `/edge-routers/${id}`)
    expect(shown).toMatchObject({ isVerified: true, fingerprint: fingerprintOf(next) })

    dataOf(await net.ask(3, 'POST', `/edge-routers/${id}/re-enroll`))
    await expectEverywhere(401, (k) => net.extendRouter(k, last, keys))
    await expectEverywhere(400, (k) => net.erott(k, token, keys))
    expect(await net.shown(1, `/edge-routers/${id}`)).toMatchObject({ isVerified: false })
    const fresh = await net.routerToken(1, id)
    const again = certifiedKey(keys.client, dataOf(await net.erott(2, fresh, keys))['cert'])
    dataOf(await net.extendRouter(3, again, keys))
  })
})

describe('A CA', () => {
  test('that is created on one controller is refused on all until it is verified on another, and then accepted on the third', async () => {
    const ca = await net.newCa(1)
    const by = await certifiedBy(ca.key, 'pump')
    await expectEverywhere(400, (k) => net.byCa(k, by))
    await refusedEverywhere(by)
    await net.verifyCa(2, ca)
    expect(dataOf(await net.byCa(3, by))).toEqual({})
    await expectEverywhere(409, (k) => net.byCa(k, by))
    const { identityId } = dataOf(await net.logIn(1, by)) as { identityId: string }
    expect(await net.shown(2, `/identities/${identityId}`)).toMatchObject({
      roleAttributes: ['sensors'],
      isAdmin: false,
    })
  })

  test('that is deleted on one controller loses its authenticators, sessions and open enrollments on every controller', async () => {
    const ca = await net.newCa(2)
    await net.verifyCa(3, ca)
    const { identityId, token } = await net.outstanding(1, { ottca: ca.id })
    const by = await certifiedBy(ca.key, 'a unit')
    dataOf(await net.ottca(2, token, by))
    const waiting = await net.outstanding(3, { ottca: ca.id })
    const session = dataOf(await net.logIn(1, by)) as { token: string }
    await expectEverywhere(200, (k) => net.session(k, session.token, by))
    dataOf(await net.ask(2, 'DELETE', `/cas/${ca.id}`))
    await refusedEverywhere(by)
    await expectEverywhere(401, (k) => net.session(k, session.token, by))
    for (const k of [1, 2, 3]) {
      expect(await net.shown(k, `/identities/${identityId}`)).toMatchObject({ authenticators: {} })
    }
    const other = await certifiedBy(ca.key, 'another unit')
    await expectEverywhere(400, (k) => net.ottca(k, waiting.token, other))
    await expectEverywhere(400, (k) => net.byCa(k, other))
  })
})

describe('An open enrollment', () => {
  test('that was created on one controller and refreshed on another is refused everywhere with its earlier token, and accepted with the new one', async () => {
    const { identityId, enrollmentId, token } = await net.outstanding(1, { ott: true })
    const twice = await net.ask(3, 'POST', '/enrollments', {
      identityId,
      method: 'ott',
      expiresAt: new Date(Date.now() + 60_000).toISOString(),
    })
    expect(codeOf(twice)).toBe('ENROLLMENT_EXISTS')
    const fresh = await net.refreshed(2, enrollmentId)
    const request = await newRequest()
    await expectEverywhere(400, (k) => net.ott(k, token, request))
    dataOf(await net.ott(3, fresh, request))
    await expectEverywhere(400, (k) => net.ott(k, token, request))
  })

  test('that was created on one controller and deleted on another is refused everywhere', async () => {
    const { enrollmentId, token } = await net.outstanding(2, { ott: true })
    dataOf(await net.ask(3, 'DELETE', `/enrollments/${enrollmentId}`))
    const request = await newRequest()
    await expectEverywhere(400, (k) => net.ott(k, token, request))
  })
})

describe('An authenticator', () => {
  test('with a password is re-enrolled as updb: the password is refused everywhere, and a new one is set with the new token', async () => {
    const username = 'field unit'
    const { token } = await net.outstanding(1, { updb: username })
    dataOf(await net.updb(2, token, password))
    const { authenticatorId } = dataOf(await net.logInByPassword(3, username, password))
    const enrollment = await net.reEnrolled(1, String(authenticatorId))
    expect(enrollment).toMatchObject({ method: 'updb', username })
    await expectEverywhere(401, (k) => net.logInByPassword(k, username, password))
    await expectEverywhere(400, (k) => net.updb(k, token, password))
    const other = `${password}, the next`
    dataOf(await net.updb(2, enrollment.token, other))
    dataOf(await net.logInByPassword(3, username, other))
  })

  test('with a certificate of the network is re-enrolled as ott: the certificate and its sessions are refused everywhere', async () => {
    const { identityId, by } = await newDevice(3)
    const session = dataOf(await net.logIn(2, by)) as { token: string; authenticatorId: string }
    const enrollment = await net.reEnrolled(3, session.authenticatorId)
    expect(enrollment).toMatchObject({ method: 'ott', identityId })
    await refusedEverywhere(by)
    await expectEverywhere(401, (k) => net.session(k, session.token, by))
    const request = await newRequest()
    const { cert } = dataOf(await net.ott(1, enrollment.token, request))
    dataOf(await net.logIn(2, certifiedKey(request, cert)))
  })

  test('with a certificate of a CA is re-enrolled as ottca: the certificate is refused everywhere until it is presented with the new token', async () => {
    const ca = await net.newCa(3)
    await net.verifyCa(1, ca)
    const { identityId, token } = await net.outstanding(2, { ottca: ca.id })
    const by = await certifiedBy(ca.key, 'a unit')
    dataOf(await net.ottca(3, token, by))
    const session = dataOf(await net.logIn(1, by)) as { authenticatorId: string }
    const enrollment = await net.reEnrolled(2, session.authenticatorId)
    expect(enrollment).toMatchObject({ method: 'ottca', caId: ca.id, identityId })
    await refusedEverywhere(by)
    dataOf(await net.ottca(3, enrollment.token, by))
    await expectEverywhere(200, (k) => net.logIn(k, by))
  })
})

describe('One enrollment token that is used at two controllers at the same moment', () => {
  const rounds = Array.from({ length: 20 }, (_, at) => [(at % 3) + 1, ((at + 1) % 3) + 1] as const)

  test('with different keys enrolls exactly one of the keys, twenty times out of twenty', async () => {
    for (const [one, other] of rounds) {
      const { identityId, token } = await net.outstanding(one, { ott: true })
      const requests = await Promise.all([newRequest(), newRequest()])
      const answers = await Promise.all([
        net.ott(one, token, requests[0]),
        net.ott(other, token, requests[1]),
      ])
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 400])
      const won = answers[0].status === 200 ? 0 : 1
      expect(codeOf(answers[1 - won] as Answer)).toBe('INVALID_ENROLLMENT_TOKEN')
      const by = certifiedKey(requests[won], dataOf(answers[won])['cert'])
      expect(await authenticatorsOf(identityId)).toMatchObject([{ fingerprint: fingerprintOf(by) }])
      dataOf(await net.logIn(other, by))
    }
  })

  test('with the same key yields the same certificate from both controllers, twenty times out of twenty', async () => {
    for (const [one, other] of rounds) {
      const { identityId, token } = await net.outstanding(one, { ott: true })
      const request = await newRequest()
      const answers = await Promise.all([one, other].map((k) => net.ott(k, token, request)))
      const by = onlyOne(answers.map((answer) => certifiedKey(request, dataOf(answer)['cert'])))
      expect(await authenticatorsOf(identityId)).toMatchObject([{ fingerprint: fingerprintOf(by) }])
    }
  })

  test('with the same key and request ID, as from a client that repeats its request at another controller, yields only certificates that the cluster knows', async () => {
    for (const [one, other] of rounds.slice(0, 6)) {
      const headers = { 'net-request-id': formatUuid(newUuidv7(Date.now())) }
      const { token } = await net.outstanding(one, { ott: true })
      const request = await newRequest()
      const answers = await Promise.all(
        [one, other].map((k) => net.ott(k, token, request, headers)),
      )
      const by = onlyOne(answers.map((answer) => certifiedKey(request, dataOf(answer)['cert'])))
      await expectEverywhere(200, (k) => net.logIn(k, by))

      const router = await net.router(other)
      const keys = await newRouterKeys(router.id)
      const enrolled = await Promise.all(
        [one, other].map((k) => net.erott(k, router.token, keys, headers)),
      )
      const own = onlyOne(enrolled.map((reply) => certifiedKey(keys.client, dataOf(reply)['cert'])))
      dataOf(await net.extendRouter(one, own, keys))
    }
  })

  function onlyOne(keys: readonly CertificateWithKey[]): CertificateWithKey {
    const [first, ...others] = keys
    if (first === undefined) throw new Error('nothing was given')
    for (const other of others) expect(other).toEqual(first)
    return first
  }

  async function authenticatorsOf(identityId: string): Promise<readonly Detail[]> {
    const path = `/identities/${identityId}/authenticators`
    return (await net.shown(3, path)) as unknown as readonly Detail[]
  }
})
