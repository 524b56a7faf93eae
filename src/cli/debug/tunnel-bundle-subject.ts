import { lstatSync } from 'node:fs'
import { dirname } from 'node:path'

import { errorMessage } from '../../lib/error-code.ts'
import { inspectChain } from '../../pki/authority/inspection.ts'
import { parseCertificates } from '../../pki/certificate.ts'
import { sendHttpsRequest } from '../client/https-request.ts'
import { readIdentityFile } from '../tunnel/identity-file.ts'
import { type DebugBundleSubject, hostFacts } from './bundle-parts.ts'

const ASK_MS = 5000

/** @throws {CommandFailure} exit 2 for an identity file that cannot be used. */
export function tunnelBundleSubject(path: string): DebugBundleSubject {
  const { origins, certificatePem, caPem } = readIdentityFile(path)
  const chain = parseCertificates(certificatePem)
  return {
    kind: 'tunnel',
    id: chain[0]?.commonName ?? 'tunnel',
    parts: [
      { name: 'certificate.json', read: () => inspectChain(chain, [], Date.now()) },
      { name: 'file.json', read: () => fileFacts(path) },
      { name: 'host.json', read: () => hostFacts(dirname(path)) },
      {
        name: 'controllers.json',
        read: () => Promise.all(origins.map((origin) => answerOf(origin, caPem))),
      },
    ],
  }
}

function fileFacts(path: string): unknown {
  const { mode, size, uid, mtime } = lstatSync(path)
  return { mode: (mode & 0o777).toString(8), bytes: size, uid, changed: mtime.toISOString() }
}

/** Checks whether this host can reach a controller; needs no session. */
async function answerOf(origin: string, caPem: string): Promise<unknown> {
  const url = `${origin}/edge/client/v1/version`
  try {
    const { status, dateMs } = await sendHttpsRequest({
      url,
      method: 'GET',
      caPem,
      timeoutMs: ASK_MS,
    })
    return { origin, status, clockAheadMs: dateMs === null ? null : Date.now() - dateMs }
  } catch (error) {
    return { origin, fault: `it ${errorMessage(error)}` }
  }
}
