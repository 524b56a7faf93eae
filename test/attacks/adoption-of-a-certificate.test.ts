import { create, toBinary } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import {
  CertificateAdoptSchema,
  CommandKind,
  EntityWriteSchema,
} from '../../proto/gen/command_pb.ts'
import type { Authenticator } from '../../src/entities/kinds/authenticator.ts'
import type { Router } from '../../src/entities/kinds/router.ts'
import { canonicalJson } from '../../src/lib/text/canonical-json.ts'
import { requirePresent } from '../../src/lib/assert.ts'
import {
  type CertificateWithKey,
  issueLeaf,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { generatePrivateKeyPem } from '../../src/pki/authority/certificate-request.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import { createEnrollmentActor } from '../../src/ports/actor.ts'
import { client, management } from '../api/support/caller.ts'
import { clientKey } from '../api/support/tls.ts'
import { commandData } from '../support/commands.ts'
import {
  attackedByCertificates,
  csrOf,
  DAY_MS,
  fingerprintOf,
  notLoggedIn,
  refusal,
} from './support/certificates.ts'

// The attack: the record of a migrated router or device contains only the SHA-1 of its certificate,
// and stores the certificate of the first client that presents it. An attacker makes the record
// store a different certificate: with another key, of another network, a second time, or after the
// certificate was revoked.

const attacked = await attackedByCertificates()
const { controller, listener, root, nowMs } = attacked
const { state } = controller

const routerOf = (id: string): Router => requirePresent(state.get('router', id), 'a router')
const authenticatorOf = (id: string): Authenticator =>
  requirePresent(state.get('authenticator', id), 'an authenticator')

interface Migrated {
  readonly id: string
  readonly key: CertificateWithKey
}

/** A router as `flotilla migrate` stores it. */
async function migratedRouter(): Promise<Migrated> {
  const { id, key } = await attacked.newRouter(generatePrivateKeyPem())
  mark(id, fingerprintOf(key))
  return { id, key }
}

/** Writes fields by a log entry that the API permits no caller to write. */
function plant(entity: 'edgeRouter' | 'authenticator', id: string, fields: object): void {
  const json = new TextEncoder().encode(canonicalJson(fields))
  const payload = toBinary(EntityWriteSchema, create(EntityWriteSchema, { entity, id, json }))
  const data = commandData(CommandKind.ENTITY_PATCH, payload)
  expect(controller.cluster.apply(data).outcome).toEqual({ ok: true, id })
}

/** Makes the record wait for a certificate with this SHA-1. */
function mark(id: string, sha1: string | null, fingerprint = sha1): void {
  plant('edgeRouter', id, { certPem: null, adoptableFingerprint: sha1, fingerprint })
}

interface MigratedDevice extends Migrated {
  readonly authenticatorId: string
}

/** An authenticator as `flotilla migrate` stores it. */
async function migratedDevice(): Promise<MigratedDevice> {
  const { identityId: id, authenticatorId } = await attacked.newDevice()
  const key = await ofNetwork(id)
  markDevice(authenticatorId, fingerprintOf(key))
  return { id, key, authenticatorId }
}

function markDevice(authenticatorId: string, sha1: string): void {
  const fields = { certPem: null, publicKeyPrint: null, fingerprint: sha1 }
  plant('authenticator', authenticatorId, { ...fields, adoptableFingerprint: sha1 })
}

/**
 * Connects with a certificate as a router does. Its hello has a fault, so that an admitted
 * connection ends there.
 */
async function connect(by: CertificateWithKey): Promise<object> {
  const body = { certCsr: await csrOf(by.privateKeyPem), serverCertCsr: '' }
  return await listener.call({ path: `${client}/enroll/extend/router`, body, by })
}

const accepted = refusal(400, 'COULD_NOT_PROCESS_CSR')
const refused = refusal(401, 'UNAUTHORIZED')

/** Expects that the connection is refused and the records stay unchanged. */
async function refusedWithout(id: string, key: CertificateWithKey): Promise<void> {
  const before = state.get('router', id)
  expect(await connect(key)).toMatchObject(refused)
  expect(state.get('router', id)).toEqual(before)
}

const leafOf = ({ certificatePem }: CertificateWithKey): string =>
  parseCertificates(certificatePem)[0].pem
const ofNetwork = (commonName: string): Promise<CertificateWithKey> =>
  clientKey(controller.authorities.issuing, commonName, nowMs())

test('The certificate of a migrated router is stored (adopted) at the router’s first connection, in one log entry, and keeps the router’s public names', async () => {
  const { id } = await migratedRouter()
  const key = await issueLeaf({
    issuer: controller.authorities.issuing,
    commonName: id,
    uris: [],
    hosts: ['edge.acme.test', '10.1.2.3', 'localhost', 'ctrl1'],
    usages: ['client'],
    validity: validityStartingAt(nowMs(), DAY_MS),
  })
  mark(id, fingerprintOf(key))
  expect(await attacked.entriesOf(() => connect(key))).toBe(1)
  expect(routerOf(id)).toMatchObject({
    certPem: leafOf(key),
    fingerprint: fingerprintOf(key),
    adoptableFingerprint: null,
    isVerified: true,
    certificateNames: ['edge.acme.test', 'localhost', 'ctrl1', '10.1.2.3'],
    // The name ctrl1 belongs to a controller.
    allowedNames: ['edge.acme.test', '10.1.2.3'],
  })
  expect(await attacked.entriesOf(() => connect(key))).toBe(0)
  expect(await connect(key)).toMatchObject(accepted)
})

test('Several controllers to which a migrated router connects adopt the router’s certificate only once', async () => {
  const { id, key } = await migratedRouter()
  const { revision } = routerOf(id)
  const replies = await Promise.all([connect(key), connect(key), connect(key)])
  for (const reply of replies) expect(reply).toMatchObject(accepted)
  const adopted = routerOf(id)
  expect(adopted).toMatchObject({ certPem: leafOf(key), revision: revision + 1 })
  // The log entry of another controller, which did not know of the adoption.
  expect(adopting(id, key)).toEqual({ ok: true, id })
  expect(routerOf(id)).toEqual(adopted)
})

test('A certificate with a key other than the migrated router’s is not adopted, although the network issued the certificate for the router’s id', async () => {
  const { id, key } = await migratedRouter()
  await refusedWithout(id, await ofNetwork(id))
  expect(await connect(key)).toMatchObject(accepted)
})

test('A certificate that the network issued to another router is not adopted, although the router is marked with its SHA-1 fingerprint', async () => {
  const { id } = await migratedRouter()
  const stray = await attacked.newRouter(generatePrivateKeyPem())
  await root.call('DELETE', `${management}/edge-routers/${stray.id}`)
  mark(id, fingerprintOf(stray.key))
  await refusedWithout(id, stray.key)
})

test('A certificate of another network is not adopted, although it contains the router’s id and the router is marked with its SHA-1 fingerprint', async () => {
  const { id } = await migratedRouter()
  const foreign = await clientKey(await attacked.newCaKey(), id, nowMs())
  mark(id, fingerprintOf(foreign))
  await refusedWithout(id, foreign)
  const ofPartner = await clientKey((await attacked.verifiedCa()).key, id, nowMs())
  mark(id, fingerprintOf(ofPartner))
  await refusedWithout(id, ofPartner)
})

test('A certificate’s SHA-1 fingerprint matches no router unless the router is marked for adoption with that fingerprint', async () => {
  const { id, key } = await migratedRouter()
  mark(id, null, fingerprintOf(key))
  await refusedWithout(id, key)
  mark(id, 'ab'.repeat(20), fingerprintOf(key))
  await refusedWithout(id, key)
})

test('A router that already has a certificate does not adopt another one', async () => {
  const { id, key } = await migratedRouter()
  await connect(key)
  const second = await ofNetwork(id)
  const fingerprint = fingerprintOf(second)
  // Simulates a second preimage of SHA-1, which nobody can compute: the record contains the SHA-1
  // of the other certificate.
  plant('edgeRouter', id, { fingerprint, adoptableFingerprint: fingerprint })
  await refusedWithout(id, second)
})

test('The certificate of a router that was disabled, must enroll again or was deleted is not adopted', async () => {
  const pathOf = (id: string): string => `${management}/edge-routers/${id}`
  const [disabled, reenrolled, deleted] = [
    await migratedRouter(),
    await migratedRouter(),
    await migratedRouter(),
  ]
  for (const [method, path, body] of [
    ['PATCH', pathOf(disabled.id), { disabled: true }],
    ['POST', `${pathOf(reenrolled.id)}/re-enroll`, {}],
    ['DELETE', pathOf(deleted.id), undefined],
  ] as const) {
    expect((await root.call(method, path, body)).status).toBe(200)
  }
  for (const { id, key } of [disabled, reenrolled, deleted]) await refusedWithout(id, key)
  expect(state.get('router', deleted.id)).toBeUndefined()
  const enabled = await root.call('PATCH', pathOf(disabled.id), { disabled: false })
  expect(enabled.status).toBe(200)
  expect(await connect(disabled.key)).toMatchObject(accepted)
  expect(routerOf(disabled.id)).toMatchObject({ certPem: leafOf(disabled.key) })
})

test('The certificate of a router that is revoked between its connection and the application of the log entry is not adopted', async () => {
  const { id, key } = await migratedRouter()
  const { cluster } = controller
  const { propose } = cluster
  cluster.propose = async (input) => {
    cluster.propose = propose
    await root.call('POST', `${management}/edge-routers/${id}/re-enroll`, {})
    return await propose.call(cluster, input)
  }
  expect(await connect(key)).toMatchObject(refused)
  expect(routerOf(id)).toMatchObject({ certPem: null, fingerprint: null, isVerified: false })
})

/** A log entry of a faulty controller that has verified nothing. */
function adopting(id: string, { certificatePem }: CertificateWithKey, by = id): object {
  const message = create(CertificateAdoptSchema, {
    holder: { case: 'routerId', value: id },
    certificate: {
      pem: parseCertificates(certificatePem)[0].pem,
      fingerprint: routerOf(id).fingerprint ?? '',
    },
  })
  const actor = createEnrollmentActor({ routerId: by }, { method: 'channel', address: '10.0.0.9' })
  const payload = toBinary(CertificateAdoptSchema, message)
  return controller.cluster.apply(commandData(CommandKind.CERTIFICATE_ADOPT, payload, actor))
    .outcome
}

test('The log entry of an adoption is refused if the certificate does not have the SHA-1 fingerprint of the router, or if another router is the actor of the entry', async () => {
  const { id, key } = await migratedRouter()
  const other = await migratedRouter()
  const before = routerOf(id)
  expect(adopting(id, await ofNetwork(id))).toMatchObject({ ok: false, code: 'UNAUTHORIZED' })
  expect(adopting(id, key, other.id)).toMatchObject({ ok: false, code: 'UNAUTHORIZED' })
  expect(routerOf(id)).toEqual(before)
})

/** Expects that the log-in is refused and the record stays unchanged. */
async function noLogIn(authenticatorId: string, key: CertificateWithKey): Promise<void> {
  const before = state.get('authenticator', authenticatorId)
  expect(await attacked.logIn(key)).toMatchObject(notLoggedIn)
  expect(state.get('authenticator', authenticatorId)).toEqual(before)
}

test('The certificate of a migrated authenticator is adopted at its first log-in, in one log entry', async () => {
  const { key, authenticatorId } = await migratedDevice()
  // The log entry that stores the certificate, and the one that opens the session.
  expect(await attacked.entriesOf(() => attacked.logIn(key))).toBe(2)
  expect(authenticatorOf(authenticatorId)).toMatchObject({
    certPem: leafOf(key),
    fingerprint: fingerprintOf(key),
    adoptableFingerprint: null,
    isIssuedByNetwork: true,
  })
  expect(await attacked.entriesOf(() => attacked.logIn(key))).toBe(1)
})

test('A certificate that the network issued to another identity is not adopted, although the authenticator is marked with its SHA-1 fingerprint', async () => {
  const { authenticatorId } = await migratedDevice()
  const stray = await ofNetwork('another-identity')
  markDevice(authenticatorId, fingerprintOf(stray))
  await noLogIn(authenticatorId, stray)
})

test('A certificate of a third-party CA is not adopted, although it contains the identity’s id and the authenticator is marked with its SHA-1 fingerprint', async () => {
  const { id, authenticatorId } = await migratedDevice()
  const ofPartner = await clientKey((await attacked.verifiedCa()).key, id, nowMs())
  markDevice(authenticatorId, fingerprintOf(ofPartner))
  await noLogIn(authenticatorId, ofPartner)
})

test('The certificate of an identity that is disabled, must enroll again or was deleted is not adopted', async () => {
  const pathOf = (id: string): string => `${management}/identities/${id}`
  const [disabled, reenrolled, deleted] = [
    await migratedDevice(),
    await migratedDevice(),
    await migratedDevice(),
  ]
  const expiresAt = new Date(nowMs() + DAY_MS).toISOString()
  for (const [method, path, body, status] of [
    ['POST', `${pathOf(disabled.id)}/disable`, { durationMinutes: 0 }, 200],
    [
      'POST',
      `${management}/authenticators/${reenrolled.authenticatorId}/re-enroll`,
      { expiresAt },
      201,
    ],
    ['DELETE', pathOf(deleted.id), undefined, 200],
  ] as const) {
    expect((await root.call(method, path, body)).status).toBe(status)
  }
  for (const { key, authenticatorId } of [disabled, reenrolled, deleted]) {
    await noLogIn(authenticatorId, key)
  }
  expect(state.get('authenticator', deleted.authenticatorId)).toBeUndefined()
  const enabled = await root.call('POST', `${pathOf(disabled.id)}/enable`, {})
  expect(enabled.status).toBe(200)
  expect((await attacked.logIn(disabled.key)).status).toBe(200)
  expect(authenticatorOf(disabled.authenticatorId)).toMatchObject({ certPem: leafOf(disabled.key) })
})
