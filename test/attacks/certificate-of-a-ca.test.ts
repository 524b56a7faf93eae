import { create, toBinary } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import { CommandKind, EnrollSchema } from '../../proto/gen/command_pb.ts'
import type { CertificateWithKey } from '../../src/pki/authority/authority.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import { client, management } from '../api/support/caller.ts'
import { made, newIdentity, shown } from '../api/support/network.ts'
import { clientKey, type TlsReply } from '../api/support/tls.ts'
import { commandData } from '../support/commands.ts'
import {
  attackedByCertificates,
  COMMON_NAME,
  DAY_MS,
  dataOf,
  fingerprintOf,
  notLoggedIn,
  refusal,
} from './support/certificates.ts'

// The attack: a third-party CA, or a holder of one of its certificates, acts for identities that do
// not belong to it: with names of our network, through a CA that is disabled, not verified or
// deleted, and with expired leaf certificates.

const attacked = await attackedByCertificates()
const { controller, listener, root } = attacked

const enroll = (by: CertificateWithKey): Promise<TlsReply> =>
  listener.call({ path: `${client}/enroll?method=ca`, by, body: {} })

async function withExternalId(externalId: string): Promise<string> {
  return await newIdentity(root, externalId, { externalId })
}

async function change(caId: string, fields: object): Promise<void> {
  const reply = await root.call('PATCH', `${management}/cas/${caId}`, fields)
  expect(reply.status, reply.text).toBe(200)
}

test('a leaf that a third-party CA issued with the SPIFFE ID and names of an identity of the network does not log in', async () => {
  const { key: own, identityId } = await attacked.newDevice()
  const { key: ca } = await attacked.verifiedCa()
  const [leaf] = parseCertificates(own.certificatePem)
  const now = attacked.nowMs()
  const reissued = await clientKey(ca, leaf.commonName ?? '', now, [...leaf.uris])
  expect(await attacked.logIn(reissued)).toMatchObject(notLoggedIn)
  const spiffe = [`spiffe://test.internal/identity/${identityId}`]
  expect(await attacked.logIn(await clientKey(ca, identityId, now, spiffe))).toMatchObject(
    notLoggedIn,
  )
  dataOf(await attacked.logIn(own))
})

test('a credential that is recorded as issued by the network cannot log in if only a third-party CA signed its certificate', async () => {
  // An authority that belonged to the network and is now registered as a third-party CA.
  const { key: ca } = await attacked.verifiedCa()
  const key = await clientKey(ca, 'a device', attacked.nowMs())
  const [leaf] = parseCertificates(key.certificatePem)
  const { id: enrollmentId, token } = await attacked.newToken({ ott: true })
  const value = {
    pem: leaf.pem,
    fingerprint: leaf.sha1,
    caId: '',
    publicKeyPrint: Buffer.from(leaf.publicKeySha256).toString('hex'),
  }
  const message = create(EnrollSchema, {
    enrollmentId,
    token,
    method: 'ott',
    authenticatorId: 'of the network',
    credential: { case: 'certificate', value },
  })
  const data = commandData(CommandKind.ENROLL, toBinary(EnrollSchema, message))
  const { outcome } = controller.cluster.apply(data)
  expect(outcome).toMatchObject({ ok: true })
  expect(await attacked.logIn(key)).toMatchObject(notLoggedIn)
})

test('a leaf issued by a disabled CA cannot log in or enroll, and writes no log entry', async () => {
  const now = attacked.nowMs()
  await withExternalId('unit 1')
  const off = { isAuthEnabled: false, isAutoCaEnrollmentEnabled: false }
  const { id, key } = await attacked.verifiedCa({ ...off, externalIdClaim: COMMON_NAME })
  const by = await clientKey(key, 'unit 1', now)
  const entries = await attacked.entriesOf(async () => {
    expect(await attacked.logIn(by)).toMatchObject(notLoggedIn)
    expect(await enroll(by)).toMatchObject(refusal(400, 'CERT_FAILED_VALIDATION'))
  })
  expect(entries).toBe(0)
  await change(id, { isAuthEnabled: true })
  dataOf(await attacked.logIn(by))
})

test('a leaf issued by an unverified CA cannot log in or enroll', async () => {
  await withExternalId('unit 2')
  const key = await attacked.newCaKey()
  const body = {
    name: 'claimed',
    certPem: key.certificatePem,
    identityRoles: [],
    isAuthEnabled: true,
    isAutoCaEnrollmentEnabled: true,
    isOttCaEnrollmentEnabled: true,
    externalIdClaim: COMMON_NAME,
  }
  const caId = await made(root, `${management}/cas`, body)
  const by = await clientKey(key, 'unit 2', attacked.nowMs())
  const entries = await attacked.entriesOf(async () => {
    expect(await attacked.logIn(by)).toMatchObject(notLoggedIn)
    const other = await clientKey(key, 'unit 2b', attacked.nowMs())
    expect(await enroll(other)).toMatchObject(refusal(400, 'CERT_FAILED_VALIDATION'))
  })
  expect(entries).toBe(0)
  const { verificationToken } = await shown(root, `${management}/cas/${caId}`)
  const proof = await clientKey(key, String(verificationToken), attacked.nowMs())
  const text = { 'content-type': 'text/plain' }
  const [{ pem }] = parseCertificates(proof.certificatePem)
  expect((await root.call('POST', `${management}/cas/${caId}/verify`, pem, text)).status).toBe(200)
  dataOf(await attacked.logIn(by))
})

test('a leaf whose CA is disabled or deleted during the log-in opens no session, because the state machine refuses it', async () => {
  const identityId = await withExternalId('unit 3')
  const arePermitted: boolean[] = []
  for (const take of [
    (id: string) => change(id, { isAuthEnabled: false }),
    (id: string) => root.call('DELETE', `${management}/cas/${id}`),
  ]) {
    const ca = await attacked.verifiedCa({ externalIdClaim: COMMON_NAME })
    const by = await clientKey(ca.key, 'unit 3', attacked.nowMs())
    const { cluster } = controller
    const propose = cluster.propose.bind(cluster)
    // The controller has verified the log-in; in the log, the removal of the CA comes before it.
    cluster.propose = async (input) => {
      cluster.propose = propose
      await take(ca.id)
      const applied = await propose(input)
      arePermitted.push(applied.outcome.ok)
      return applied
    }
    expect(await attacked.logIn(by)).toMatchObject(notLoggedIn)
  }
  expect(arePermitted).toEqual([false, false])
  expect(controller.state.table('apiSession').indexes.ids('identityId', identityId).size).toBe(0)
})

test('an expired or not yet valid leaf cannot enroll; only an expired one can log in, if the policy of its holder allows it', async () => {
  const ca = await attacked.verifiedCa({ externalIdClaim: COMMON_NAME })
  await withExternalId('unit 4')
  const now = attacked.nowMs()
  const leafIn = (fromDays: number, toDays: number, name = 'unit 4'): Promise<CertificateWithKey> =>
    clientKey(ca.key, name, {
      notBeforeMs: now + fromDays * DAY_MS,
      notAfterMs: now + toDays * DAY_MS,
    })
  // A CA must be valid before its leaf certificates: the validity of the expired leaf begins after
  // that of the CA.
  const [expired, early] = [await leafIn(0, 1), await leafIn(3, 5)]
  controller.clock.advance(2 * DAY_MS)
  root.token = controller.openSession('admin-id')
  for (const [by, name] of [
    [await leafIn(0, 1, 'unit 5'), 'expired'],
    [await leafIn(3, 5, 'unit 6'), 'not yet valid'],
  ] as const) {
    expect(await enroll(by), name).toMatchObject(refusal(400, 'CERT_FAILED_VALIDATION'))
  }
  const rule = async (allowExpiredCerts: boolean): Promise<void> => {
    const path = `${management}/auth-policies/default`
    const body = { primary: { cert: { allowed: true, allowExpiredCerts } } }
    expect((await root.call('PATCH', path, body)).status).toBe(200)
  }
  await rule(false)
  expect(await attacked.logIn(expired), fingerprintOf(expired)).toMatchObject(notLoggedIn)
  expect(await attacked.logIn(early)).toMatchObject(notLoggedIn)
  await rule(true)
  expect(await attacked.logIn(early)).toMatchObject(notLoggedIn)
  dataOf(await attacked.logIn(expired))
  // The controller has verified the log-in; in the log, a stricter policy comes before it.
  const { cluster } = controller
  const propose = cluster.propose.bind(cluster)
  cluster.propose = async (input) => {
    cluster.propose = propose
    await rule(false)
    return propose(input)
  }
  const sessions = (): number => controller.state.table('apiSession').rows.size
  const before = sessions()
  expect(await attacked.logIn(expired)).toMatchObject(notLoggedIn)
  expect(sessions()).toBe(before)
})
