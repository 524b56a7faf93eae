import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { CertificateApiClient } from '../../../src/cli/client/certificate-api-client.ts'
import { identityFileText } from '../../../src/cli/enroll/identity-file.ts'
import { IdentityCertificateFile } from '../../../src/cli/tunnel/identity-certificate-file.ts'
import { readIdentityFile } from '../../../src/cli/tunnel/identity-file.ts'
import { issueLeaf, validityStartingAt } from '../../../src/pki/authority/authority.ts'
import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../../../src/pki/authority/certificate-request.ts'
import { parseCertificate } from '../../../src/pki/certificate.ts'
import { IdentityCertificateRenewer } from '../../../src/tunnel/identity-certificate-renewer.ts'
import { CallerOf, client, management } from '../support/caller.ts'
import { admin, startController, type TestController } from '../support/controller.ts'
import { type Detail, newIdentity, shown } from '../support/network.ts'
import { TlsListener } from '../support/tls.ts'

// Goal: the certificate renewal of a tunnel works with a controller. Method: the API client of the
// program over TLS to the real listener.

const DAY_MS = 24 * 60 * 60_000

let folder: string
let controller: TestController
let listener: TlsListener
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-renewal-'))
  controller = await startController()
  // The API client puts the time of this machine into its request IDs.
  controller.clock.advance(Date.now() - controller.clock.nowMs())
  const own = await issueLeaf({
    issuer: controller.authorities.issuing,
    commonName: 'ctrl1',
    uris: [],
    hosts: ['127.0.0.1'],
    usages: ['server'],
    validity: validityStartingAt(Date.now(), DAY_MS),
  })
  listener = await TlsListener.open(controller, own)
})
afterEach(async () => {
  await listener.close()
  await controller.close()
  rmSync(folder, { recursive: true })
})

/** Enrolls a device. @returns the path of its identity file. */
async function enrolled(): Promise<string> {
  const caller = new CallerOf(controller)
  await caller.logIn(admin)
  const id = await newIdentity(caller, 'laptop', { enrollment: { ott: true } })
  const identity = await shown(caller, `${management}/identities/${id}`)
  const { token } = (identity['enrollment'] as { ott: Detail }).ott
  const privateKeyPem = generatePrivateKeyPem()
  const body = { clientCsr: await createCertificateRequest({ privateKeyPem, id }) }
  const reply = await listener.call({ path: `${client}/enroll?token=${String(token)}`, body })
  const certificatePem = String((reply.body.data as Detail)['cert'])
  const origin = `https://127.0.0.1:${listener.port}`
  const path = join(folder, 'laptop.json')
  const caPem = controller.authorities.anchorsPem()
  const text = identityFileText({ origin, privateKeyPem, certificatePem, caPem }, [origin])
  writeFileSync(path, text, { mode: 0o600 })
  return path
}

/** Starts a tunnel with an identity file, as the program does. */
function started(path: string, isForced: boolean) {
  const identity = readIdentityFile(path)
  const api = new CertificateApiClient(identity)
  const certificate = new IdentityCertificateFile(path, identity)
  const warnings: object[] = []
  const log = {
    info: () => undefined,
    error: () => undefined,
    warn: (fields: object): void => void warnings.push(fields),
  }
  const { clock } = controller
  return {
    api,
    warnings,
    renewal: new IdentityCertificateRenewer({ api, certificate, clock, log, isForced }),
  }
}

test('A tunnel renews its certificate while its session continues, and afterwards only the renewed certificate can log in', async () => {
  const path = await enrolled()
  const earlier = readIdentityFile(path)
  const { api, renewal, warnings } = started(path, true)
  const { identityId } = await renewal.logIn()
  await renewal.judge(identityId)
  expect(warnings).toEqual([])
  const renewed = readIdentityFile(path)
  expect(renewed).toEqual({ ...earlier, certificatePem: renewed.certificatePem })
  const [before, after] = [earlier, renewed].map((file) => parseCertificate(file.certificatePem))
  expect(after?.sha1).not.toBe(before?.sha1)
  expect(after?.uris).toEqual([`spiffe://test.internal/identity/${identityId}`])
  expect(await api.get('/current-identity')).toMatchObject({ id: identityId })
  await expect(new CertificateApiClient(earlier).logIn()).rejects.toThrow('log-in refused')
  expect(await started(path, false).renewal.logIn()).toMatchObject({ identityId })
})
