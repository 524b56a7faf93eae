import { afterAll, expect } from 'vitest'

import { unsetExternalIdClaim } from '../../../src/entities/parts/ca-external-id-claim.ts'
import { requirePresent } from '../../../src/lib/assert.ts'
import type { CertificateWithKey } from '../../../src/pki/authority/authority.ts'
import { parseCertificates } from '../../../src/pki/certificate.ts'
import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../../../src/pki/authority/certificate-request.ts'
import { newCa } from '../../support/authorities.ts'
import { client, management } from '../../api/support/caller.ts'
import { controllerForFile, type ForFile } from '../../api/support/for-file.ts'
import type { InlineIssuer } from '../../api/support/inline-issuer.ts'
import { type Detail, made, newIdentity, shown } from '../../api/support/network.ts'
import { clientKey, TlsListener, type TlsReply } from '../../api/support/tls.ts'

export const DAY_MS = 24 * 60 * 60_000
/** With this setting, a CA identifies the holder of a certificate by its common name. */
export const COMMON_NAME = { ...unsetExternalIdClaim, location: 'COMMON_NAME' }
export const PEM = { 'content-type': 'application/x-pem-file' }

/** A device with a credential that the network has issued. */
export interface Device {
  readonly identityId: string
  readonly authenticatorId: string
  readonly key: CertificateWithKey
}

/** A controller with a real listener, and clients that connect with certificates. */
export interface Attacked extends ForFile {
  readonly listener: TlsListener
  nowMs(): number
  newToken(enrollment: Detail): Promise<{ identityId: string; id: string; token: string }>
  newDevice(): Promise<Device>
  newRouter(privateKeyPem: string): Promise<{ id: string; key: CertificateWithKey }>
  verifiedCa(
    rest?: Detail,
    key?: CertificateWithKey,
  ): Promise<{ id: string; key: CertificateWithKey }>
  newCaKey(): Promise<CertificateWithKey>
  logIn(by: CertificateWithKey | null, headers?: Record<string, string>): Promise<TlsReply>
  /** Number of entries that the log gets during the attack. */
  entriesOf(attack: () => Promise<unknown>): Promise<number>
}

export async function attackedByCertificates(): Promise<Attacked> {
  const forFile = await controllerForFile()
  const { controller, root } = forFile
  const listener = await TlsListener.open(controller)
  afterAll(() => listener.close())
  const nowMs = (): number => controller.clock.nowMs()
  let serial = 0
  const name = (kind: string): string => {
    serial += 1
    return `${kind} ${serial}`
  }
  const logIn: Attacked['logIn'] = (by, headers = {}) =>
    listener.call({ path: `${client}/authenticate?method=cert`, by, body: {}, headers })
  const newToken: Attacked['newToken'] = async (enrollment) => {
    const identityId = await newIdentity(root, name('device'), { enrollment })
    const identity = await shown(root, `${management}/identities/${identityId}`)
    const [one] = Object.values(identity['enrollment'] as Record<string, Detail>)
    return { identityId, id: String(one?.['id']), token: String(one?.['token']) }
  }
  const newCaKey = (): Promise<CertificateWithKey> => newCa(name('authority'), nowMs())
  return {
    ...forFile,
    listener,
    nowMs,
    newToken,
    newCaKey,
    logIn,
    newDevice: async () => {
      const { identityId, token } = await newToken({ ott: true })
      const privateKeyPem = generatePrivateKeyPem()
      const body = await csrOf(privateKeyPem)
      const path = `${client}/enroll?token=${token}`
      const { cert } = dataOf(await listener.call({ path, body, headers: PEM }))
      const key = { certificatePem: String(cert), privateKeyPem }
      const identity = await shown(root, `${management}/identities/${identityId}`)
      const authenticatorId = String((identity['authenticators'] as { cert: Detail }).cert['id'])
      return { identityId, authenticatorId, key }
    },
    newRouter: async (privateKeyPem) => {
      const id = await made(root, `${management}/edge-routers`, { name: name('gate') })
      const { enrollmentToken } = await shown(root, `${management}/edge-routers/${id}`)
      const path = `${client}/enroll?method=erott&token=${String(enrollmentToken)}`
      const body = await routerRequests(id, privateKeyPem)
      const { cert } = dataOf(await listener.call({ path, body }))
      return { id, key: { certificatePem: String(cert), privateKeyPem } }
    },
    verifiedCa: async (rest = {}, given) => {
      const key = given ?? (await newCaKey())
      const id = await made(root, `${management}/cas`, {
        name: name('authority'),
        certPem: key.certificatePem,
        identityRoles: [],
        isAuthEnabled: true,
        isAutoCaEnrollmentEnabled: true,
        isOttCaEnrollmentEnabled: true,
        ...rest,
      })
      const { verificationToken } = await shown(root, `${management}/cas/${id}`)
      const proof = await clientKey(key, String(verificationToken), nowMs())
      const [leaf] = parseCertificates(proof.certificatePem)
      const text = { 'content-type': 'text/plain' }
      const reply = await root.call('POST', `${management}/cas/${id}/verify`, leaf.pem, text)
      expect(reply.status, reply.text).toBe(200)
      return { id, key }
    },
    entriesOf: async (attack) => {
      const before = controller.machine.appliedIndex
      await attack()
      return controller.machine.appliedIndex - before
    },
  }
}

export function dataOf(reply: TlsReply, status = 200): Detail {
  expect(reply.status, reply.text).toBe(status)
  return reply.body.data as Detail
}

export const refusal = (status: number, code: string): object => ({
  status,
  body: { error: { code } },
})
export const notLoggedIn = refusal(401, 'INVALID_AUTH')

export function csrOf(privateKeyPem: string, id = 'anybody'): Promise<string> {
  return createCertificateRequest({ privateKeyPem, id })
}

export async function routerRequests(id: string, privateKeyPem: string): Promise<Detail> {
  return {
    certCsr: await csrOf(privateKeyPem, id),
    serverCertCsr: await csrOf(generatePrivateKeyPem(), 'gate.test'),
  }
}

/**
 * Delays certificate requests until this many wait, as if separate controllers had verified each;
 * then runs `meanwhile` before their entries are added to the log.
 */
export function heldTogether(
  issuer: InlineIssuer,
  method: 'identity' | 'router',
  count: number,
  meanwhile: () => unknown = () => undefined,
): void {
  const { promise, resolve } = Promise.withResolvers<unknown>()
  let waiting = 0
  const hold = async (): Promise<void> => {
    waiting += 1
    if (waiting === count) resolve(meanwhile())
    await promise
  }
  const identity = issuer.identity.bind(issuer)
  const router = issuer.router.bind(issuer)
  if (method === 'identity') {
    issuer.identity = async (order) => hold().then(() => identity(order))
  } else {
    issuer.router = async (order) => hold().then(() => router(order))
  }
}

export function fingerprintOf({ certificatePem }: CertificateWithKey): string {
  return requirePresent(parseCertificates(certificatePem)[0], 'a leaf').sha1
}
