import { expect, test } from 'vitest'

import {
  type CertificateWithKey,
  issueLeaf,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { type Certificate, parseCertificates } from '../../src/pki/certificate.ts'
import { generatePrivateKeyPem } from '../../src/pki/authority/certificate-request.ts'
import { createRouterRequest } from '../../src/pki/authority/router-request.ts'
import { controllerSpiffeId } from '../../src/pki/spiffe.ts'
import { client, management } from '../api/support/caller.ts'
import { testTrustDomain } from '../api/support/inline-issuer.ts'
import { type Detail, made, newIdentity, shown } from '../api/support/network.ts'
import { raiseLevel } from '../api/support/raise-level.ts'
import { attackedByCertificates, csrOf, DAY_MS, dataOf, refusal } from './support/certificates.ts'

// The attack: clients verify controllers and routers with the same authority. A holder of a
// router's enrollment token or key requests a server certificate with the name of a controller,
// another router or a wildcard, and poses as it.

const attacked = await attackedByCertificates()
const { controller, root, listener, sessionOf } = attacked

await raiseLevel(controller)

const leaf = await issueLeaf({
  issuer: controller.authorities.issuing,
  commonName: 'ctrl1',
  uris: [controllerSpiffeId(testTrustDomain, 'ctrl1')],
  hosts: ['control.example', '10.1.0.1', 'localhost', '127.0.0.1'],
  usages: ['client', 'server'],
  validity: validityStartingAt(attacked.nowMs(), DAY_MS),
})
const members = controller.cluster.members()
controller.cluster.members = () =>
  members.map((member) => ({
    ...member,
    address: 'peer.example:1480',
    routerAddresses: ['tls:fabric.example:6262'],
    apiAddresses: [{ api: 'edge-client', url: 'https://api.example:1280', version: 'v1' }],
    certificatePem: leaf.certificatePem,
  }))

let serial = 0

async function newRouter(rest: Detail = {}): Promise<{ id: string; name: string; path: string }> {
  serial += 1
  const name = `gate-${serial}`
  const id = await made(root, `${management}/edge-routers`, { name, ...rest })
  const { enrollmentToken } = await shown(root, `${management}/edge-routers/${id}`)
  return { id, name, path: `${client}/enroll?method=erott&token=${String(enrollmentToken)}` }
}

async function requests(
  id: string,
  names: { readonly dns?: readonly string[]; readonly ip?: readonly string[] },
  privateKeyPem: string,
  commonName = id,
): Promise<Detail> {
  const none = { country: null, province: null, locality: null, organization: null }
  return {
    certCsr: await csrOf(privateKeyPem, id),
    serverCertCsr: await createRouterRequest({
      privateKeyPem: generatePrivateKeyPem(),
      subject: { commonName, ...none, organizationalUnit: null },
      names: { dns: [], ip: [], uri: [], email: [], ...names },
    }),
  }
}

interface Enrolled {
  readonly id: string
  readonly name: string
  readonly key: CertificateWithKey
  readonly server: Certificate
}

async function enrolled(dns: readonly string[], rest: Detail = {}): Promise<Enrolled> {
  const { id, name, path } = await newRouter(rest)
  const privateKeyPem = generatePrivateKeyPem()
  const body = await requests(id, { dns, ip: ['127.0.0.1'] }, privateKeyPem)
  const { cert, serverCert } = dataOf(await listener.call({ path, body }))
  const key = { certificatePem: String(cert), privateKeyPem }
  return { id, name, key, server: parseCertificates(String(serverCert))[0] }
}

async function extended(
  { id, key }: Enrolled,
  names: Parameters<typeof requests>[1],
  commonName?: string,
): Promise<Certificate> {
  const body = await requests(id, names, key.privateKeyPem, commonName)
  const path = `${client}/enroll/extend/router`
  const { serverCert } = dataOf(await listener.call({ path, body, by: key }))
  return parseCertificates(String(serverCert))[0]
}

test('no router can enroll with a host name of a controller', async () => {
  const { id, path } = await newRouter()
  for (const dns of [
    'control.example',
    'PEER.example',
    'fabric.example.',
    'api.example',
    'ctrl1',
  ]) {
    const body = await requests(id, { dns: ['localhost', dns] }, generatePrivateKeyPem())
    const reply = await listener.call({ path, body })
    expect(reply).toMatchObject(refusal(400, 'COULD_NOT_PROCESS_CSR'))
    expect(reply.text).toContain('is that of a controller')
    expect(reply.text, 'the refusal names the solution').toContain('allowedNames')
  }
  const body = await requests(id, { ip: ['10.1.0.1'] }, generatePrivateKeyPem())
  expect(await listener.call({ path, body })).toMatchObject(refusal(400, 'COULD_NOT_PROCESS_CSR'))
})

test('no router can enroll with a wildcard name', async () => {
  const { id, path } = await newRouter()
  for (const dns of ['*.com', '*.example']) {
    const body = await requests(id, { dns: [dns] }, generatePrivateKeyPem())
    const reply = await listener.call({ path, body })
    expect(reply).toMatchObject(refusal(400, 'COULD_NOT_PROCESS_CSR'))
    expect(reply.text).toContain('is a wildcard')
  }
})

test('the certificate of a router contains no names of another router, but may contain loopback names', async () => {
  const victim = await enrolled(['victim.example', 'localhost'])
  // An ID that ends in a hyphen is not a valid DNS name, and is refused for this reason.
  const idAsName = victim.id.toLowerCase()
  const { server, id } = await enrolled([
    'victim.example',
    victim.name,
    ...(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(idAsName) ? [idAsName] : []),
    'own.example',
    'localhost',
  ])
  expect(server.dnsNames).not.toContain('victim.example')
  expect(server.dnsNames).not.toContain(victim.name)
  expect(server.dnsNames).toEqual(expect.arrayContaining(['own.example', 'localhost']))
  expect(server.ipAddresses).toEqual(['127.0.0.1'])
  const record = await shown(root, `${management}/edge-routers/${id}`)
  expect(record['certificateNames']).toEqual([...server.dnsNames, '127.0.0.1'])
})

test('a stolen router gets no certificate with host names of other routers', async () => {
  const router = await enrolled(['stolen.example', 'localhost'])
  const other = await enrolled(['other.example'])
  const dns = [
    '*.com',
    'api.example',
    'stolen.example',
    'other.example',
    'new.example',
    'localhost',
  ]
  const server = await extended(router, { dns, ip: ['10.1.0.1', '127.0.0.1'] }, other.id)
  expect(server.dnsNames).toEqual(['stolen.example', 'localhost'])
  expect(server.ipAddresses).toEqual(['127.0.0.1'])
  expect(server.commonNames, 'whatever the request says').toEqual([router.id])
  expect(server.uris).toEqual([`spiffe://${testTrustDomain}/router/${router.id}`])
})

test('a router gets the host names that an administrator allowed, and only an administrator can allow them', async () => {
  const holder = sessionOf(await newIdentity(root, 'keeper', { permissions: ['router'] }))
  const names = { allowedNames: ['api.example', '*.edge.example'] }
  const refused = refusal(401, 'UNAUTHORIZED')
  const create = await holder.call('POST', `${management}/edge-routers`, { name: 'own', ...names })
  expect(create).toMatchObject(refused)
  const id = await made(holder, `${management}/edge-routers`, { name: 'own' })
  const path = `${management}/edge-routers/${id}`
  expect(await holder.call('PATCH', path, names)).toMatchObject(refused)
  expect(await holder.call('PUT', path, { name: 'own', ...names })).toMatchObject(refused)
  expect((await holder.call('PUT', path, { name: 'own' })).status).toBe(200)
  expect((await root.call('PATCH', path, names)).status).toBe(200)
  expect(
    await holder.call('PUT', path, { name: 'own' }),
    'the holder cannot remove the name, either',
  ).toMatchObject(refused)
  expect((await holder.call('PATCH', path, { cost: 2 })).status).toBe(200)
  const { server } = await enrolled(['api.example', 'a.edge.example', '*.edge.example'], {
    allowedNames: [...names.allowedNames, 'a.edge.example'],
  })
  expect(server.dnsNames).toEqual(['api.example', 'a.edge.example', '*.edge.example'])
})
