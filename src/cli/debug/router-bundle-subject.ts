import { realpathSync } from 'node:fs'
import { dirname } from 'node:path'

import { loadRouterConfig } from '../../config/router/load.ts'
import { routerConfigNotes } from '../../config/router/section-notes.ts'
import { formatConfigFault } from '../../config/engine/fault.ts'
import { usageFailure } from '../../controller/command-failure.ts'
import { inspectChain } from '../../pki/authority/inspection.ts'
import { parseCertificates } from '../../pki/certificate.ts'
import { findIdentityFiles } from '../../router/identity/identity-files.ts'
import { readEndpoints } from '../../router/controllers/endpoints-file.ts'
import { findHostStartFaults } from '../router/host-faults.ts'
import { acquirePathLock } from '../terminal/process-lock.ts'
import { readTextFile } from '../terminal/text-file.ts'
import { type DebugBundleSubject, hostFacts } from './bundle-parts.ts'

/** @throws {CommandFailure} exit 2, one line for each fault of the configuration. */
export function routerBundleSubject(path: string): DebugBundleSubject {
  const loaded = loadRouterConfig(path, process.env)
  if (!loaded.ok) throw usageFailure(loaded.faults.map(formatConfigFault).join('\n'))
  const { config, effective, warnings } = loaded
  const found = findIdentityFiles(config)
  const chainAt = (file: string): unknown =>
    inspectChain(parseCertificates(readTextFile(file)), [], Date.now())
  const files = found.ok ? found.files : null
  const id = files === null ? 'router' : nameIn(files.cert)
  return {
    kind: 'router',
    id,
    parts: [
      // The same content as `router check --print`: secrets are redacted.
      { name: 'configuration.json', read: () => effective },
      {
        name: 'check.json',
        read: async () => {
          const { faults, notes } = await findHostStartFaults(loaded)
          const more = routerConfigNotes(config)
          return { isRunning: await isRunning(path), warnings, faults, notes: [...more, ...notes] }
        },
      },
      { name: 'host.json', read: () => hostFacts(dirname(path)) },
      { name: 'controllers.json', read: () => readEndpoints(config.ctrl.endpointsFile) },
      { name: 'certificate.json', read: () => chainAt(requireFile(files?.cert)) },
      { name: 'server-certificate.json', read: () => chainAt(requireFile(files?.serverCert)) },
    ],
  }
}

function requireFile(path: string | undefined): string {
  if (path === undefined) throw new Error('the configuration names no file for it')
  return path
}

/** The router's id, which is the common name of its certificate; `router` if it cannot be read. */
function nameIn(path: string): string {
  try {
    return parseCertificates(readTextFile(path))[0]?.commonName ?? 'router'
  } catch {
    return 'router'
  }
}

async function isRunning(path: string): Promise<boolean> {
  try {
    const lock = await acquirePathLock('router', realpathSync(path))
    lock.close()
    return false
  } catch {
    return true
  }
}
