import { create } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import { ConfigurationSchema, MemberSchema } from '../../proto/gen/membership_pb.ts'
import { nextReconcileStep } from '../../src/cluster/membership/reconcile.ts'
import { admittedIdsWithExpiredTickets } from '../../src/cluster/secrets/secret-rotation.ts'
import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../../src/pki/authority/certificate-request.ts'
import { newOpaqueId } from '../../src/lib/random.ts'
import { SecretsCluster } from '../cluster/secrets-fixture.ts'
import { anOperator } from '../support/recorded-actions.ts'

// The attack: somebody uses a stolen ticket and never connects. No list of members shows the
// controller, its ticket soon disappears from the lists, and the controller can connect at any
// later time.

const lifetimeMs = 3_600_000

/**
 * The next action of a leader that is the only member, at the current time of its clock and log
 * time.
 */
function handlerOf(cluster: SecretsCluster): unknown {
  const id = 'ctrl1'
  const record = create(ConfigurationSchema, {
    members: [create(MemberSchema, { id, voter: true })],
  })
  const view = {
    record,
    leaderId: id,
    inContact: new Set([id]),
    lagEntries: () => 0,
    reachedBy: () => new Set<string>(),
    silentMs: () => 0,
    isRotationDue: false,
    lacksSecrets: false,
    admittedIdsWithExpiredTickets: admittedIdsWithExpiredTickets(cluster.machine, cluster.clock.ms),
    featureLevel: { inForce: 2, ofVoters: 2 },
  }
  return nextReconcileStep(view, 1000)
}

test('an admitted controller that does not connect before its ticket expires is removed', async () => {
  const cluster = await SecretsCluster.form(['ctrl1'])
  const { desk } = cluster.member('ctrl1')
  const invite = async () => (await desk.invite({ isVoter: true, lifetimeMs }, anOperator)).ticket
  const id = 'ctrl9'
  const privateKeyPem = generatePrivateKeyPem()
  await desk.admit({
    ticket: await invite(),
    id,
    certificateRequestPem: await createCertificateRequest({ privateKeyPem, id }),
    storeId: newOpaqueId(),
    address: 'ctrl9.example:1480',
    hosts: ['ctrl9.example'],
    version: 'v0.2.0',
    featureLevel: 2,
  })
  expect(handlerOf(cluster)).toBeNull()
  cluster.clock.ms += lifetimeMs
  expect(handlerOf(cluster)).toMatchObject({ type: 'drop', id })
  // The creation of this join ticket also removes the expired ticket from the state.
  await invite()
  expect(handlerOf(cluster)).toMatchObject({ type: 'drop', id })
})
