import { parentPort, workerData } from 'node:worker_threads'

import { requirePresent } from '../lib/assert.ts'
import type { IssuingSettings } from '../pki/authority/issue-certificates.ts'
import { type CertificateCommand, CertificateCommandExecutor } from './certificate-messages.ts'

// Program of the certificate thread. Only this thread parses the untrusted requests of identities,
// sessions and routers, checks their signatures and signs their certificates.

const main = requirePresent(parentPort, 'this file runs as the certificate thread')
const commands = new CertificateCommandExecutor(workerData as IssuingSettings)

main.on('message', (command: CertificateCommand) => {
  main.postMessage(commands.carryOut(command))
})
main.postMessage('ready')
