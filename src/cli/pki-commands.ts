import { existsSync, readFileSync } from 'node:fs'

import type { CertificatesView } from '../cluster/certificate-keeper.ts'
import { systemClock } from '../lib/clock.ts'
import { renewIssuingAuthority } from '../pki/authority.ts'
import { createCertificateRequest, generatePrivateKeyPem } from '../pki/certificate-request.ts'
import {
  BUNDLE_CERTIFICATES_MAX,
  CertificateError,
  isoTime,
  parseCertificates,
  parsePrivateKey,
} from '../pki/certificate.ts'
import type { Certificate } from '../pki/certificate.ts'
import { readCertificates } from '../pki/identity-files.ts'
import {
  readSecretFile,
  SecretFileError,
  writePublicFile,
  writeSecretFile,
} from '../pki/key-file.ts'
import { validityWithin } from '../pki/renewal.ts'
import { AdminError, askController } from './admin-client.ts'
import { loadConfigOrFail } from './cluster-commands.ts'
import { CommandFailure, EXIT_FAILED, EXIT_USAGE } from './failure.ts'
import { printJson, printLine, shellWord } from './output.ts'

const DAY_MS = 24 * 60 * 60 * 1000
/** The cluster has to agree on another issuing authority. */
const INSTALL_TIMEOUT_MS = 30_000

interface PkiOptions {
  readonly config: string
  readonly json?: boolean
}

/** Renews the certificate of the controller on this host, or signs one of another member anew. */
export async function renew(
  options: PkiOptions & { readonly memberCert?: string; readonly out?: string },
): Promise<void> {
  const { memberCert, out } = options
  if ((memberCert === undefined) !== (out === undefined)) {
    throw new CommandFailure(
      EXIT_USAGE,
      '--member-cert and --out go together: give both or neither',
    )
  }
  if (memberCert === undefined || out === undefined) {
    tellLeaf(options, (await ask(options, 'pki-renew')) as CertificatesView)
    return
  }
  const certificatePem = await explained(() => readFileSync(memberCert, 'utf8'))
  const answer = (await ask(options, 'pki-renew-member', { certificatePem })) as {
    readonly id: string
    readonly certificatePem: string
    readonly notAfterMs: number
  }
  await explained(() => writePublicFile(out, answer.certificatePem))
  const { id, notAfterMs } = answer
  if (options.json === true) printJson({ id, cert: out, notAfter: isoTime(notAfterMs) })
  else {
    printLine(`${out}: for ${id}, until ${isoTime(notAfterMs)}`)
    printLine(`put it in place of identity.cert of ${id}, and start it`)
  }
}

/** Has the controller on this host read its files again. */
export async function reload(options: PkiOptions): Promise<void> {
  tellLeaf(options, (await ask(options, 'pki-reload')) as CertificatesView)
}

function tellLeaf({ json }: PkiOptions, view: CertificatesView): void {
  const [leaf] = view.certificates
  if (json === true) printJson(view)
  else if (leaf !== undefined) {
    printLine(`in force: ${leaf.subject}, until ${isoTime(leaf.notAfterMs)}`)
    if (view.alarm !== null) printLine(`warning: ${view.alarm}`)
  }
}

/** Makes a new issuing authority under the root, and hands it to the cluster. */
export async function renewIssuing(
  options: PkiOptions & {
    readonly rootKey: string
    readonly keepKey?: boolean
    readonly days: number
  },
): Promise<void> {
  const config = loadConfigOrFail(options.config)
  const { root, rootKeyPem } = await explained(() => {
    const { text, warning } = readSecretFile(options.rootKey)
    if (warning !== null) process.stderr.write(`flotilla: warning: ${warning}\n`)
    return { root: rootOf(config.identity.ca, options.rootKey, text), rootKeyPem: text }
  })
  const { issuingPem } = (await ask(options, 'pki-inspect')) as CertificatesView
  if (issuingPem === null) {
    throw new CommandFailure(
      EXIT_FAILED,
      `${config.id}: the issuing authority of the cluster is not known there yet; try again when it has caught up`,
    )
  }
  const [present] = parseCertificates(issuingPem)
  const spki = present.native.publicKey.export({ type: 'spki', format: 'der' })
  const authority = await explained(() =>
    renewIssuingAuthority({
      root: { certificatePem: root.pem, privateKeyPem: rootKeyPem },
      presentPem: present.pem,
      publicKeySpki: options.keepKey === true ? Uint8Array.from(spki) : null,
      validity: validityWithin(root, systemClock.nowMs(), options.days * DAY_MS),
    }),
  )
  const params = { ...authority }
  const answer = await ask(options, 'pki-install-issuing', params, INSTALL_TIMEOUT_MS)
  const { notAfterMs, formerNotAfterMs } = answer as {
    readonly notAfterMs: number
    readonly formerNotAfterMs: number
  }
  const [notAfter, formerNotAfter] = [isoTime(notAfterMs), isoTime(formerNotAfterMs)]
  if (options.json === true) {
    printJson({ notAfter, formerNotAfter })
    return
  }
  printLine(`the cluster has a new issuing authority, until ${notAfter}`)
  printLine('every member signs itself a certificate under it within seconds')
  printLine(
    `certificates issued before stay valid until they end themselves, ${formerNotAfter} at the latest`,
  )
  printLine(`take ${options.rootKey} off this machine again`)
}

/** @throws {CertificateError} when the key is of none of them. */
function rootOf(caPath: string, keyPath: string, keyPem: string): Certificate {
  const key = parsePrivateKey(keyPem)
  const anchors = readCertificates(caPath, BUNDLE_CERTIFICATES_MAX)
  // Of several certificates of one root the one that lasts longest lets the new authority last longest.
  const [root] = anchors
    .filter(({ isAuthority, native }) => isAuthority && native.checkPrivateKey(key))
    .sort((a, b) => b.notAfterMs - a.notAfterMs)
  if (root !== undefined) return root
  throw new CertificateError(
    'key-mismatch',
    `${keyPath} is not the key of any CA certificate in ${caPath}; name the root key that was made when the cluster was formed`,
  )
}

/** Issues a certificate for a key that is made, and stays, on this host. */
export async function issue(
  options: PkiOptions & {
    readonly name: string
    readonly host: readonly string[]
    readonly usage: readonly string[]
    readonly days: number
    readonly out: string
    readonly key?: string
  },
): Promise<void> {
  const keyPath = options.key ?? `${options.out}.key`
  // Judged before a key is written for nothing.
  const privateKeyPem = await explained(() =>
    existsSync(keyPath) ? readSecretFile(keyPath).text : generatePrivateKeyPem(),
  )
  const requestPem = await explained(() =>
    createCertificateRequest({ privateKeyPem, id: options.name }),
  )
  const answer = (await ask(options, 'pki-issue', {
    requestPem,
    hosts: options.host,
    usages: options.usage.length === 0 ? ['client'] : options.usage,
    days: options.days,
  })) as { readonly certificatePem: string; readonly notAfterMs: number }
  await explained(() => {
    if (!existsSync(keyPath)) writeSecretFile(keyPath, privateKeyPem)
    writePublicFile(options.out, answer.certificatePem)
  })
  const notAfter = isoTime(answer.notAfterMs)
  if (options.json === true) {
    printJson({ cert: options.out, key: keyPath, notAfter })
    return
  }
  printLine(`certificate ${options.out}, key ${keyPath}, until ${notAfter}`)
  printLine('it does not renew itself: issue it again in time')
}

/** Files and certificates that are not good are the operator's to mend: one line, no stack. */
async function explained<T>(step: () => T | Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    const isTheirs =
      error instanceof CertificateError ||
      error instanceof SecretFileError ||
      (error instanceof Error && 'syscall' in error)
    throw isTheirs ? new CommandFailure(EXIT_FAILED, error.message, error) : error
  }
}

async function ask(
  { config: path }: PkiOptions,
  verb: string,
  params: Readonly<Record<string, unknown>> = {},
  timeoutMs?: number,
): Promise<unknown> {
  const config = loadConfigOrFail(path)
  try {
    return await askController(config.data, verb, params, timeoutMs)
  } catch (error) {
    if (!(error instanceof AdminError)) throw error
    const hint =
      error.code === 'NOT_RUNNING'
        ? `; start it with: flotilla controller run ${shellWord(path)}`
        : ''
    throw new CommandFailure(EXIT_FAILED, `${config.id}: ${error.message}${hint}`, error)
  }
}
