import { Worker } from 'node:worker_threads'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'

import { systemClock } from '../../src/lib/clock.ts'
import type { CertificateWithKey } from '../../src/pki/authority/authority.ts'
import { distinguishedNameFromCommonName } from '../../src/pki/asn1/distinguished-name.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import type { AuthorityKey } from '../../src/threads/certificate-messages.ts'
import {
  CertificateWorker,
  type CertificateWorkerLimits,
} from '../../src/threads/certificate-worker.ts'
import type { RouterHostRules } from '../../src/ports/certificate-issuer.ts'
import { networkAuthorities } from '../support/authorities.ts'
import { DAY_MS, requestPem } from '../pki/support/fixtures.ts'

const limits = {
  certificateMsMax: 10_000,
  certificateWaitMsMax: 60_000,
  certificatesWaitingMax: 64,
}
const settings = {
  trustDomain: 'test.internal',
  enrolledCertificateMs: 365 * DAY_MS,
  sessionCertificateMs: DAY_MS / 2,
}
let first: CertificateWithKey
let second: CertificateWithKey
let held: AuthorityKey | null
let worker: CertificateWorker | null = null

beforeAll(async () => {
  first = (await networkAuthorities(Date.now())).issuing
  second = (await networkAuthorities(Date.now())).issuing
})

function start(changes: Partial<CertificateWorkerLimits> = {}): CertificateWorker {
  held = first
  worker = new CertificateWorker({
    limits: { ...limits, ...changes },
    settings,
    authority: () => held,
    clock: systemClock,
  })
  return worker
}

afterEach(async () => {
  vi.restoreAllMocks()
  await worker?.close()
  worker = null
})

const order = { identityId: 'id-1', requestPem: requestPem() }
const naming: RouterHostRules = {
  at: 'enrollment',
  allowed: [],
  reserved: [],
  withheld: [],
  currentPem: null,
}

test('certificates of every kind are issued in a separate thread', async () => {
  const issuer = start()
  const identity = await issuer.identity(order, 'a')
  const [leaf, above] = parseCertificates(identity.chainPem)
  expect(leaf.uris).toEqual(['spiffe://test.internal/identity/id-1'])
  expect(above?.pem).toBe(parseCertificates(first.certificatePem)[0].pem)
  expect(identity.fingerprint).toBe(leaf.sha1)
  const next = await issuer.extend({ ...order, currentPem: identity.leafPem }, 'a')
  expect(parseCertificates(next.leafPem)[0].uris).toEqual(leaf.uris)
  const session = await issuer.session({ ...order, apiSessionId: 's', certificateId: 'c' }, 'a')
  expect(session.subject).toBe('CN=id-1')
  expect(session.notAfterMs - session.notBeforeMs).toBe(DAY_MS / 2 + 60_000)
  const clientRequestPem = requestPem({ subject: distinguishedNameFromCommonName('r1').der })
  const router = { routerId: 'r1', clientRequestPem, serverRequestPem: requestPem(), naming }
  const { client, server } = await issuer.router(router, 'a')
  expect(client.subject).toBe('CN=r1')
  expect(parseCertificates(server.chainPem)[0].commonName).toBe('r1')
})

test('an invalid certificate request is refused with one sentence, and the next request is processed', async () => {
  const issuer = start()
  const code = 'COULD_NOT_PROCESS_CSR'
  const bad = [
    issuer.identity({ ...order, requestPem: 'x' }, 'a'),
    issuer.identity({ ...order, identityId: 'a/b' }, 'a'),
    issuer.router(
      {
        routerId: 'r1',
        naming,
        clientRequestPem: order.requestPem,
        serverRequestPem: order.requestPem,
      },
      'a',
    ),
    issuer.extend({ ...order, currentPem: 'x' }, 'a'),
  ]
  const good = issuer.identity(order, 'a')
  await expect(bad[0]).rejects.toMatchObject({
    code,
    detail: 'not exactly one certificate request in PEM',
  })
  for (const one of bad) await expect(one).rejects.toMatchObject({ code })
  expect((await good).subject).toBe('CN=somebody')
})

test('a new CA signs certificates as soon as it is the current one', async () => {
  const issuer = start()
  const before = await issuer.identity(order, 'a')
  held = second
  const after = await issuer.identity(order, 'a')
  const intermediates = [before, after].map(({ chainPem }) => parseCertificates(chainPem)[1]?.pem)
  expect(intermediates).toEqual(
    [first, second].map(({ certificatePem }) => parseCertificates(certificatePem)[0].pem),
  )
})

test('without a CA a request gets PEER_UNREACHABLE, so that the caller tries another controller, and an expired CA issues nothing', async () => {
  const issuer = start()
  held = null
  await expect(issuer.identity(order, 'a')).rejects.toMatchObject({
    code: 'PEER_UNREACHABLE',
    retryAfterSeconds: 1,
  })
  held = (await networkAuthorities(0)).issuing
  await expect(issuer.identity(order, 'a')).rejects.toMatchObject({ code: 'CERTIFICATE_REFUSED' })
})

test('certificate requests fail while the key of the CA is unusable, and succeed with the next CA', async () => {
  const issuer = start()
  held = { ...first, privateKeyPem: second.privateKeyPem }
  const failed = await issuer.identity(order, 'a').catch((error: unknown) => error)
  expect(String(failed)).toContain('does not belong to the authority')
  expect(String(failed)).not.toContain('PRIVATE')
  held = first
  expect((await issuer.identity(order, 'a')).subject).toBe('CN=somebody')
})

test('a full queue refuses certificate requests, and no single caller can fill this queue', async () => {
  const issuer = start({ certificatesWaitingMax: 8 })
  const many = Array.from({ length: 100 }, () => issuer.identity(order, 'greedy'))
  const other = issuer.identity(order, 'other')
  const ends = await Promise.allSettled(many)
  expect(ends.some(({ status }) => status === 'fulfilled')).toBe(true)
  for (const end of ends) {
    if (end.status === 'rejected') {
      expect(end.reason).toMatchObject({ code: 'SERVER_TOO_MANY_REQUESTS' })
    }
  }
  expect(ends.filter(({ status }) => status === 'rejected').length).toBeGreaterThan(50)
  expect((await other).subject).toBe('CN=somebody')
})

test('a certificate thread that hangs is replaced: its current request fails, and the other requests are processed', async () => {
  const issuer = start({ certificateMsMax: 1500 })
  await issuer.identity(order, 'a')
  const post = vi.spyOn(Worker.prototype, 'postMessage').mockImplementation(() => undefined)
  const ends = Array.from({ length: 12 }, () => issuer.identity(order, 'a'))
  post.mockRestore()
  const [late, ...rest] = await Promise.allSettled(ends)
  expect(late).toMatchObject({ status: 'rejected', reason: { code: 'TIMEOUT' } })
  for (const end of rest) expect(end.status).toBe('fulfilled')
})

test('a certificate request that has waited too long in the queue is refused', async () => {
  const issuer = start({ certificateWaitMsMax: -1 })
  await expect(issuer.identity(order, 'a')).rejects.toMatchObject({
    code: 'SERVER_TOO_MANY_REQUESTS',
  })
})

test('closing the certificate issuer rejects the queued requests, and then no certificate is issued', async () => {
  const issuer = start()
  const waiting = Array.from({ length: 20 }, () => issuer.identity(order, 'a'))
  const ends = Promise.allSettled(waiting)
  await issuer.close()
  for (const end of await ends) expect(end.status).toBe('rejected')
  await expect(issuer.identity(order, 'a')).rejects.toMatchObject({
    code: 'SERVER_TOO_MANY_REQUESTS',
  })
})
