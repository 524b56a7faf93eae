import { create, toBinary } from '@bufbuild/protobuf'
import { beforeAll, expect, test } from 'vitest'

import { CommandKind, EntityWriteSchema } from '../../proto/gen/command_pb.ts'
import { canonicalJson } from '../../src/lib/text/canonical-json.ts'
import { generatePrivateKeyPem } from '../../src/pki/authority/certificate-request.ts'
import { client, management } from '../api/support/caller.ts'
import { newIdentity, shown } from '../api/support/network.ts'
import { commandData } from '../support/commands.ts'
import {
  attackedByCertificates,
  csrOf,
  dataOf,
  type Device,
  fingerprintOf,
  notLoggedIn,
  refusal,
  routerRequests,
} from './support/certificates.ts'

// The attack: fingerprints are SHA-1 hashes, which have collisions. Somebody with a certificate of
// the network creates one whose fingerprint equals that of another credential; this test simulates
// it by writing the attacker's fingerprint to the other record.

const attacked = await attackedByCertificates()
const { controller, listener, root } = attacked
const utf8 = new TextEncoder()

let mallory: Device
let victim: Device
beforeAll(async () => {
  mallory = await attacked.newDevice()
  victim = await attacked.newDevice()
})

/** Writes a log entry without the checks of the API. */
function plant(
  kind: typeof CommandKind.ENTITY_CREATE | typeof CommandKind.ENTITY_PATCH,
  entity: string,
  id: string,
  fields: object,
) {
  const message = create(EntityWriteSchema, {
    entity,
    id,
    json: utf8.encode(canonicalJson(fields)),
  })
  const { outcome } = controller.cluster.apply(
    commandData(kind, toBinary(EntityWriteSchema, message)),
  )
  expect(outcome, JSON.stringify(outcome)).toMatchObject({ ok: true })
}

/** A device whose certificate is issued by the network and whose authenticator has been deleted. */
async function deletedDevice(): Promise<Device> {
  const stray = await attacked.newDevice()
  const gone = `${management}/authenticators/${stray.authenticatorId}`
  expect((await root.call('DELETE', gone)).status).toBe(200)
  return stray
}

test('a certificate with the same fingerprint as another credential does not log in', async () => {
  const stray = await deletedDevice()
  const identityId = await newIdentity(root, 'an administrator', { isAdmin: true })
  plant(CommandKind.ENTITY_CREATE, 'authenticator', 'planted', {
    identityId,
    method: 'cert',
    caId: '',
    certPem: victim.key.certificatePem,
    fingerprint: fingerprintOf(stray.key),
  })
  expect(await attacked.logIn(stray.key)).toMatchObject(notLoggedIn)
  dataOf(await attacked.logIn(mallory.key))
})

test('a certificate with the same fingerprint as a router’s certificate cannot be used to extend the router’s certificate', async () => {
  const privateKeyPem = generatePrivateKeyPem()
  const router = await attacked.newRouter(privateKeyPem)
  const fingerprint = fingerprintOf(mallory.key)
  plant(CommandKind.ENTITY_PATCH, 'edgeRouter', router.id, { fingerprint })
  const path = `${client}/enroll/extend/router`
  const body = await routerRequests(router.id, privateKeyPem)
  expect(await listener.call({ path, body, by: mallory.key })).toMatchObject(
    refusal(401, 'UNAUTHORIZED'),
  )
})

test('a caller who has another client’s session but not its certificate cannot extend that client’s certificate', async () => {
  const stolen = String(dataOf(await attacked.logIn(victim.key))['token'])
  const stray = await deletedDevice()
  const path = `${client}/current-identity/authenticators/${victim.authenticatorId}/extend`
  const body = { clientCertCsr: await csrOf(generatePrivateKeyPem()) }
  const fingerprint = fingerprintOf(victim.key)
  const { authenticatorId } = victim
  // If a controller compared only fingerprints, the client of the session could present this
  // certificate.
  plant(CommandKind.ENTITY_PATCH, 'authenticator', authenticatorId, {
    fingerprint: fingerprintOf(stray.key),
  })
  expect(await listener.call({ path, body, token: stolen, by: stray.key })).toMatchObject(
    refusal(401, 'UNAUTHORIZED'),
  )
  plant(CommandKind.ENTITY_PATCH, 'authenticator', authenticatorId, { fingerprint })
  for (const by of [mallory.key, null]) {
    expect(await listener.call({ path, body, token: stolen, by })).toMatchObject(
      refusal(401, 'UNAUTHORIZED'),
    )
  }
  const known = await shown(root, `${management}/authenticators/${victim.authenticatorId}`)
  expect(known['fingerprint']).toBe(fingerprintOf(victim.key))
  dataOf(await listener.call({ path, body, token: stolen, by: victim.key }))
})
