import { parentPort, workerData } from 'node:worker_threads'

import { present } from '../lib/assert.ts'
import type { IssuingSettings } from '../pki/authority/certificate-order.ts'
import { type CertificateSigner, loadIssuer } from '../pki/authority/enrolled-certificate.ts'
import {
  carryOut,
  type CertificateCommand,
  type CertificateReport,
} from './certificate-messages.ts'

// Thread of certificates: requests of anybody are read, their signatures checked and certificates
// signed here alone.

const main = present(parentPort, 'certificates have a thread of their own')
const settings = workerData as IssuingSettings
let issuer: CertificateSigner | null = null

function report(message: CertificateReport): void {
  main.postMessage(message)
}

main.on('message', (command: CertificateCommand) => {
  if (command.type === 'authority') issuer = loadIssuer(command)
  else {
    const authority = present(issuer, 'an authority comes before the first order')
    report(carryOut(command.order, authority, settings, command.nowMs))
  }
})
report({ type: 'ready' })
