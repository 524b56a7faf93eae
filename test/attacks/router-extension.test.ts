import { expect, test } from 'vitest'

import { generatePrivateKeyPem } from '../../src/pki/authority/certificate-request.ts'
import { client } from '../api/support/caller.ts'
import { clientKey } from '../api/support/tls.ts'
import {
  attackedByCertificates,
  DAY_MS,
  dataOf,
  heldTogether,
  refusal,
  routerRequests,
} from './support/certificates.ts'

// The attack: somebody obtains the certificates of a router with public knowledge: its public
// certificate behind another one, its previous certificate, or an expired one.

const attacked = await attackedByCertificates()
const { controller, listener } = attacked
const path = `${client}/enroll/extend/router`
const refused = refusal(401, 'UNAUTHORIZED')

test('the public certificate of a router behind a certificate of the attacker is refused', async () => {
  const router = await attacked.newRouter(generatePrivateKeyPem())
  const body = await routerRequests(router.id, generatePrivateKeyPem())
  const device = await attacked.newDevice()
  const [routerLeaf = ''] = router.key.certificatePem.split(/(?<=-----END CERTIFICATE-----\n)/)
  const [ownLeaf = ''] = device.key.certificatePem.split(/(?<=-----END CERTIFICATE-----\n)/)
  const likeIssued = await clientKey(router.key, 'mine', attacked.nowMs())
  for (const by of [
    { ...device.key, certificatePem: ownLeaf + routerLeaf },
    { ...device.key, certificatePem: device.key.certificatePem + routerLeaf },
    { ...device.key, certificatePem: ownLeaf + router.key.certificatePem },
    // One that names the router as its issuer, so that its certificate leads on from there.
    { ...likeIssued, certificatePem: likeIssued.certificatePem + router.key.certificatePem },
  ]) {
    expect(await listener.call({ path, body, by })).toMatchObject(refused)
  }
  dataOf(await listener.call({ path, body, by: router.key }))
})

test('a certificate that two controllers have found valid is extended by only one of them', async () => {
  const router = await attacked.newRouter(generatePrivateKeyPem())
  const body = await routerRequests(router.id, generatePrivateKeyPem())
  heldTogether(controller.issuer, 'router', 2)
  const call = () => listener.call({ path, body, by: router.key })
  const replies = await Promise.all([call(), call()])
  expect(replies.map(({ status }) => status).sort()).toEqual([200, 401])
})

test('an expired certificate cannot be extended', async () => {
  const router = await attacked.newRouter(generatePrivateKeyPem())
  const body = await routerRequests(router.id, generatePrivateKeyPem())
  controller.clock.advance(366 * DAY_MS)
  expect(await listener.call({ path, body, by: router.key })).toMatchObject(refused)
})
