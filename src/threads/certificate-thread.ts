import { parentPort, workerData } from 'node:worker_threads'

import { present } from '../lib/assert.ts'
import type { IssuingSettings } from '../pki/authority/certificate-order.ts'
import { type CertificateSigner, loadIssuer } from '../pki/authority/enrolled-certificate.ts'
import { type AuthorityKey, carryOut, type CertificateCommand } from './certificate-messages.ts'

// Thread of certificates: requests of anybody are read, their signatures checked and certificates
// signed here alone.

const main = present(parentPort, 'certificates have a thread of their own')
const settings = workerData as IssuingSettings
let loaded: { readonly authority: AuthorityKey; readonly issuer: CertificateSigner } | null = null

/** Loaded again only when it was rotated, as this checks a key. */
function issuerOf(authority: AuthorityKey): CertificateSigner {
  const isLoaded =
    loaded?.authority.certificatePem === authority.certificatePem &&
    loaded.authority.privateKeyPem === authority.privateKeyPem
  if (loaded === null || !isLoaded) loaded = { authority, issuer: loadIssuer(authority) }
  return loaded.issuer
}

main.on('message', ({ order, nowMs, authority }: CertificateCommand) => {
  main.postMessage(carryOut(order, issuerOf(authority), settings, nowMs))
})
main.postMessage('ready')
