import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { create, toBinary } from '@bufbuild/protobuf'

import { CommandKind, EntityWriteSchema } from '../../proto/gen/command_pb.ts'
import { createRouterAdmitter } from '../../src/controller/service/router-admitter.ts'
import { canonicalJson } from '../../src/lib/text/canonical-json.ts'
import { issueLeafForKey, validityStartingAt } from '../../src/pki/authority/authority.ts'
import { parseCertificate } from '../../src/pki/certificate.ts'
import { CallerOf, management } from '../api/support/caller.ts'
import { admin, startController, type TestController } from '../api/support/controller.ts'
import { made, shown } from '../api/support/network.ts'
import { clientKey } from '../api/support/tls.ts'
import { commandData } from '../support/commands.ts'

// Attack: a thief who has copied the key and the certificate of a router has open links to other
// routers. An administrator re-enrolls the router, and it enrolls with a new key. A controller that
// applies both changes before it checks its channels sees only another certificate. The other
// routers must close the thief's links. A renewal must not close links: it would interrupt circuits.

const YEAR_MS = 365 * 24 * 60 * 60_000

let controller: TestController
let root: CallerOf
beforeAll(async () => {
  controller = await startController()
  root = new CallerOf(controller)
  await root.logIn(admin)
})
afterAll(() => controller.close())

/** Replaces the certificate in a router's record. */
function record(id: string, certPem: string): void {
  const fields = { certPem, fingerprint: parseCertificate(certPem).sha1, isVerified: true }
  const json = new TextEncoder().encode(canonicalJson(fields))
  const message = create(EntityWriteSchema, { entity: 'edgeRouter', id, json })
  const payload = toBinary(EntityWriteSchema, message)
  const { outcome } = controller.cluster.apply(commandData(CommandKind.ENTITY_PATCH, payload))
  expect(outcome).toEqual({ ok: true, id })
}

async function certificateFor(publicKeySpki: Uint8Array, id: string): Promise<string> {
  return await issueLeafForKey(
    {
      issuer: controller.authorities.issuing,
      commonName: id,
      uris: [],
      hosts: [],
      usages: ['client', 'server'],
      validity: validityStartingAt(controller.clock.nowMs(), YEAR_MS),
    },
    publicKeySpki,
  )
}

describe('A connected router whose record gets a new certificate', () => {
  test('is disconnected; its links stay open only if the new certificate has the key of the previous one', async () => {
    const { machine, authorities, clock } = controller
    const gate = createRouterAdmitter({ machine, authorities, isOutOfService: () => false })
    const id = await made(root, `${management}/edge-routers`, { name: 'stolen' })
    const { certificatePem: certPem } = await clientKey(authorities.issuing, id, clock.nowMs())
    record(id, certPem)
    const admitted = { id, name: 'stolen', isEdge: true, certPem }
    expect(gate.revoked(admitted)).toBeNull()

    const spki = parseCertificate(certPem).native.publicKey.export({ type: 'spki', format: 'der' })
    const reason = 'the certificate of the router changed'
    record(id, await certificateFor(spki, id))
    expect(gate.revoked(admitted)).toEqual({ reason, endsLinks: false })

    const enrolledAgain = await clientKey(authorities.issuing, id, clock.nowMs())
    record(id, enrolledAgain.certificatePem)
    expect(gate.revoked(admitted)).toEqual({ reason, endsLinks: true })
    expect(await shown(root, `${management}/edge-routers/${id}`)).toMatchObject({
      isVerified: true,
    })
  })
})
