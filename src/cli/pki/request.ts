import { existsSync } from 'node:fs'
import { dirname } from 'node:path'

import {
  createControllerRequest,
  generatePrivateKeyPem,
} from '../../pki/authority/certificate-request.ts'
import { ALTERNATIVE_NAMES_MAX } from '../../pki/certificate.ts'
import { readSecretFile, writeNewFile, writePublicFile } from '../../pki/secret-file.ts'
import { controllerSpiffeId } from '../../pki/spiffe.ts'
import { CommandFailure, EXIT_USAGE } from '../../controller/command-failure.ts'
import { formatHostPort, parseHostPort } from '../../lib/text/names.ts'
import { loadConfigOrFail } from '../client/connection.ts'
import { advertisedHosts } from '../../config/controller/advertised-hosts.ts'
import { refuseForeignFolders } from '../terminal/folder-owner.ts'
import { makeFolder } from '../terminal/make-folder.ts'
import { printJson, printLine } from '../terminal/output.ts'
import { withOneLineErrors } from './commands.ts'

/**
 * Creates a controller's key, unless it exists, and a certificate request (CSR) for the operator's
 * CA.
 */
export async function requestControllerCertificate(options: {
  readonly config: string
  readonly out: string
  readonly host: readonly string[]
  readonly rsa?: boolean
  readonly json?: boolean
}): Promise<void> {
  const config = loadConfigOrFail(options.config)
  const { id, trustDomain, identity } = config
  const hosts = hostsOf(options.host, advertisedHosts(config))
  const isThere = existsSync(identity.key)
  if (!isThere) refuseForeignFolders([identity.key])
  await withOneLineErrors(async () => {
    const kind = options.rsa === true ? 'rsa' : 'ec'
    const privateKeyPem = isThere ? readSecretFile(identity.key).text : generatePrivateKeyPem(kind)
    const requestPem = await createControllerRequest({ privateKeyPem, id, trustDomain, hosts })
    makeFolder(dirname(identity.key), 0o700)
    if (!isThere) writeNewFile(identity.key, privateKeyPem, 0o600)
    writePublicFile(options.out, requestPem)
  })
  const spiffeId = controllerSpiffeId(trustDomain, id)
  if (options.json === true) {
    printJson({ csr: options.out, key: identity.key, isNewKey: !isThere, spiffeId, hosts })
    return
  }
  printLine(`key: ${identity.key} (${isThere ? 'kept' : 'created'})`)
  printLine(`request: ${options.out} for ${spiffeId}, ${hosts.join(', ')}`)
  printLine(`have it signed, then put the certificate with its intermediates into ${identity.cert}`)
}

/**
 * True if the configuration accepts the host as an address to dial. A wildcard is refused, because
 * members and clients cannot dial it.
 */
function isDialable(host: string): boolean {
  return parseHostPort(formatHostPort({ host, port: 1 })) !== null
}

function hostsOf(given: readonly string[], advertised: readonly string[]): string[] {
  const fault = given.find((host) => !isDialable(host))
  if (fault !== undefined) {
    const found = JSON.stringify(fault)
    throw new CommandFailure(
      EXIT_USAGE,
      `--host: expected a DNS name or an IP address, found ${found}`,
    )
  }
  const hosts = [...new Set([...advertised, ...given])]
  if (hosts.length < ALTERNATIVE_NAMES_MAX) return hosts
  throw new CommandFailure(EXIT_USAGE, `--host: more than ${ALTERNATIVE_NAMES_MAX - 1} hosts`)
}
