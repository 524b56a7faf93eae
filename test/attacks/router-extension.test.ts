import { expect, test } from 'vitest'

import { generatePrivateKeyPem } from '../../src/pki/authority/certificate-request.ts'
import { client, management } from '../api/support/caller.ts'
import { clientKey } from '../api/support/tls.ts'
import {
  attackedByCertificates,
  DAY_MS,
  dataOf,
  heldTogether,
  refusal,
  routerRequests,
} from './support/certificates.ts'

// The attack: somebody obtains certificates of a router with public data: its public certificate
// appended to another one, its previous certificate, or an expired one.

const attacked = await attackedByCertificates()
const { controller, listener } = attacked
const path = `${client}/enroll/extend/router`
const refused = refusal(401, 'UNAUTHORIZED')

test('the extension of a router’s certificate is refused if the attacker presents the router’s public certificate behind another leaf', async () => {
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
    // A certificate with the router's name as issuer, so that the router's certificate seems to
    // continue its chain.
    { ...likeIssued, certificatePem: likeIssued.certificatePem + router.key.certificatePem },
  ]) {
    const before = controller.state.get('router', router.id)
    expect(await listener.call({ path, body, by })).toMatchObject(refused)
    expect(controller.state.get('router', router.id)).toEqual(before)
  }
  dataOf(await listener.call({ path, body, by: router.key }))
})

test('two simultaneous requests to extend the certificate of one router return the same certificates', async () => {
  const router = await attacked.newRouter(generatePrivateKeyPem())
  const body = await routerRequests(router.id, generatePrivateKeyPem())
  heldTogether(controller.issuer, 'router', 2)
  const call = () => listener.call({ path, body, by: router.key })
  const [one, other] = await Promise.all([call(), call()])
  expect(dataOf(one)).toEqual(dataOf(other))
})

test('a router certificate is refused if it was replaced while its extension was in progress', async () => {
  const router = await attacked.newRouter(generatePrivateKeyPem())
  const privateKeyPem = generatePrivateKeyPem()
  const body = await routerRequests(router.id, privateKeyPem)
  const { cert } = dataOf(await listener.call({ path, body, by: router.key }))
  const next = { privateKeyPem, certificatePem: String(cert) }
  const other = await routerRequests(router.id, generatePrivateKeyPem())
  const isHeld = Promise.withResolvers<void>()
  const isReplaced = Promise.withResolvers<void>()
  const issue = controller.issuer.router.bind(controller.issuer)
  controller.issuer.router = async (order) => {
    controller.issuer.router = issue
    isHeld.resolve()
    await isReplaced.promise
    return issue(order)
  }
  const late = listener.call({ path, body: other, by: router.key })
  await isHeld.promise
  dataOf(await listener.call({ path, body, by: next }))
  const replaced = controller.state.get('router', router.id)
  isReplaced.resolve()
  expect(await late).toMatchObject(refused)
  expect(controller.state.get('router', router.id)).toEqual(replaced)
})

test('a certificate that a router has signed itself, and the pending certificate of a router that must enroll again, are refused', async () => {
  const router = await attacked.newRouter(generatePrivateKeyPem())
  const privateKeyPem = generatePrivateKeyPem()
  const body = await routerRequests(router.id, privateKeyPem)
  const { cert } = dataOf(await listener.call({ path, body, by: router.key }))
  const likeIssued = await clientKey(router.key, router.id, attacked.nowMs())
  expect(await listener.call({ path, body, by: likeIssued })).toMatchObject(refused)
  const url = `${management}/edge-routers/${router.id}/re-enroll`
  expect((await attacked.root.call('POST', url)).status).toBe(200)
  const next = { privateKeyPem, certificatePem: String(cert) }
  const again = controller.state.get('router', router.id)
  expect(await listener.call({ path, body, by: next })).toMatchObject(refused)
  expect(controller.state.get('router', router.id)).toEqual(again)
})

test('an expired router certificate cannot be extended', async () => {
  const router = await attacked.newRouter(generatePrivateKeyPem())
  const body = await routerRequests(router.id, generatePrivateKeyPem())
  controller.clock.advance(366 * DAY_MS)
  expect(await listener.call({ path, body, by: router.key })).toMatchObject(refused)
})
