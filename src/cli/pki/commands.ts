import { existsSync } from 'node:fs'

import {
  validateResponse,
  booleanShape,
  listShape,
  nullableShape,
  objectShape,
  optionalShape,
  textShape,
  timeShape,
} from '../client/response-shape.ts'
import { readTextFile } from '../terminal/text-file.ts'
import { systemClock } from '../../lib/clock.ts'
import {
  issueControllerCertificateForKey,
  renewIssuingAuthority,
} from '../../pki/authority/authority.ts'
import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../../pki/authority/certificate-request.ts'
import {
  BUNDLE_CERTIFICATES_MAX,
  type Certificate,
  CertificateError,
  checkKeyMatches,
  leafControllerId,
  parseCertificates,
  parsePrivateKey,
} from '../../pki/certificate.ts'
import { certificatesPem, readCertificates } from '../../pki/verify/identity-files.ts'
import {
  readSecretFile,
  SecretFileError,
  writePublicFile,
  writeSecretFile,
} from '../../pki/secret-file.ts'
import { limitValidity } from '../../pki/authority/renewal.ts'
import type { ActiveCertificates } from '../../api/cluster/pki-control.ts'
import {
  createOperationCaller,
  type ConnectionOptions,
  loadConfigOrFail,
} from '../client/connection.ts'
import { runAsFileOwner } from '../../controller/run-as-file-owner.ts'
import { CommandFailure, EXIT_FAILED, EXIT_USAGE } from '../../controller/command-failure.ts'
import { printJson, printLine, printNote } from '../terminal/output.ts'
import { isoTime } from '../../lib/text/format-time.ts'

const DAY_MS = 24 * 60 * 60 * 1000
/** Maximum time until the cluster has committed the new issuing authority. */
const INSTALL_TIMEOUT_MS = 30_000

/**
 * Validity of a controller certificate that is renewed with the root key, in days. It is short,
 * because the controller renews the certificate as soon as it runs.
 */
const ROOT_SIGNED_DAYS = 7

/** Options of commands that can also be sent to a controller on another host. */
type AskedOptions = ConnectionOptions & { readonly json?: boolean }

interface PkiOptions {
  readonly config: string
  readonly json?: boolean
}

/**
 * Renews the certificate of a controller, or signs a new certificate for another member. With
 * `rootKey`, no controller needs to run.
 */
export async function renewCertificate(
  options: AskedOptions & {
    readonly memberCert?: string
    readonly out?: string
    readonly rootKey?: string
  },
): Promise<void> {
  const { memberCert, out, rootKey } = options
  if (rootKey !== undefined) {
    if (memberCert !== undefined || out !== undefined) {
      throw new CommandFailure(EXIT_USAGE, '--root-key cannot be combined with --member-cert')
    }
    const { config, json = false } = options
    if (config === undefined) {
      throw new CommandFailure(EXIT_USAGE, '--root-key needs --config of the controller to renew')
    }
    await renewByRoot({ config, json }, rootKey)
    return
  }
  if ((memberCert === undefined) !== (out === undefined)) {
    throw new CommandFailure(EXIT_USAGE, '--member-cert and --out must be given together')
  }
  if (memberCert === undefined || out === undefined) {
    printLeaf(options, (await ask(options, 'renew')) as ActiveCertificates)
    return
  }
  const certificatePem = await withOneLineErrors(() => readTextFile(memberCert))
  const answer = (await ask(options, 'renew-member', { certificatePem })) as {
    readonly id: string
    readonly certificatePem: string
    readonly notAfterMs: number
  }
  await withOneLineErrors(() => writePublicFile(out, answer.certificatePem))
  const { id, notAfterMs } = answer
  if (options.json === true) printJson({ id, cert: out, notAfter: isoTime(notAfterMs) })
  else {
    printLine(`${out}: for ${id}, until ${isoTime(notAfterMs)}`)
    printLine(`install it as identity.cert of ${id}, and start that controller`)
  }
}

/**
 * Renews the certificate with the root key. Use it for a controller that cannot start because its
 * certificate has expired, while no other member runs. A temporary authority with the name of the
 * cluster's authority signs the certificate, so the controllers accept it as a certificate of their
 * cluster. Once the controller runs, it replaces the certificate with one from the current
 * authority.
 */
async function renewByRoot(options: PkiOptions, rootKey: string): Promise<void> {
  const config = loadConfigOrFail(options.config)
  const { cert, key, ca } = config.identity
  const certificatePem = await withOneLineErrors(async () => {
    const { root, rootKeyPem } = readRoot(ca, rootKey)
    const [leaf, present] = readCertificates(cert)
    checkKeyMatches(leaf, readSecretFile(key).text)
    if (present === undefined || leaf.native.issuer !== present.native.subject) {
      throw new CertificateError(
        'wrong-identity',
        `${cert} lacks its issuing authority; have its issuer renew it`,
      )
    }
    const validity = limitValidity(root, systemClock.nowMs(), ROOT_SIGNED_DAYS * DAY_MS)
    const authority = await renewIssuingAuthority({
      root: { certificatePem: root.pem, privateKeyPem: rootKeyPem },
      presentPem: present.pem,
      publicKeySpki: null,
      validity,
    })
    const next = await issueControllerCertificateForKey({
      issuer: { ...authority, privateKeyPem: authority.privateKeyPem ?? '' },
      trustDomain: config.trustDomain,
      id: leafControllerId(leaf, config.trustDomain),
      hosts: [...leaf.dnsNames, ...leaf.ipAddresses],
      publicKeySpki: Uint8Array.from(leaf.native.publicKey.export({ type: 'spki', format: 'der' })),
      validity,
    })
    await runAsFileOwner(cert, () => writePublicFile(cert, next))
    return next
  })
  const notAfter = isoTime(parseCertificates(certificatePem)[0].notAfterMs)
  if (options.json === true) {
    printJson({ id: config.id, cert, notAfter })
    return
  }
  printLine(
    `${cert}: for ${config.id}, valid until ${notAfter}; start the controller before this time, and it renews the certificate itself`,
  )
  printLine(`remove ${rootKey} from this host again`)
}

/** Makes a controller reload its certificate files. */
export async function reloadCertificates(options: AskedOptions): Promise<void> {
  printLeaf(options, (await ask(options, 'reload')) as ActiveCertificates)
}

function printLeaf({ json }: AskedOptions, view: ActiveCertificates): void {
  const [leaf] = view.certificates
  if (json === true) printJson(view)
  else if (leaf !== undefined) {
    printLine(`in use: ${leaf.subject}, valid until ${isoTime(leaf.notAfterMs)}`)
    for (const { path, certificate } of view.serverCertificates ?? []) {
      if (certificate !== null) {
        const end = isoTime(certificate.notAfterMs)
        printLine(`in use: ${certificate.subject}, valid until ${end} (${path})`)
      }
    }
    if (view.alarm !== null) printLine(`warning: ${view.alarm}`)
  }
}

/**
 * Gives the cluster a new issuing authority: either generated here and signed with the root key, or
 * supplied by the operator and signed by the operator's CA.
 */
export async function replaceIssuingAuthority(
  options: PkiOptions & {
    readonly rootKey?: string
    readonly cert?: string
    readonly key?: string
    readonly keepKey?: boolean
    readonly days: number
  },
): Promise<void> {
  const { rootKey, cert, key } = options
  if ((rootKey === undefined) === (cert === undefined)) {
    throw new CommandFailure(
      EXIT_USAGE,
      'give either --root-key, or --cert of an authority that you have had signed',
    )
  }
  if (key !== undefined && cert === undefined) {
    throw new CommandFailure(EXIT_USAGE, '--key needs --cert')
  }
  const params =
    rootKey === undefined
      ? await withOneLineErrors(() => readAuthority(cert ?? '', key))
      : await signedAuthority(options, rootKey)
  const answer = await ask(options, 'issuing-authority', params, INSTALL_TIMEOUT_MS)
  const { notAfterMs, formerNotAfterMs } = answer as {
    readonly notAfterMs: number
    readonly formerNotAfterMs: number
  }
  const [notAfter, formerNotAfter] = [isoTime(notAfterMs), isoTime(formerNotAfterMs)]
  if (options.json === true) {
    printJson({ notAfter, formerNotAfter })
    return
  }
  printLine(`new issuing authority, valid until ${notAfter}`)
  printLine('every member renews its certificate under it within seconds')
  printLine(
    `certificates issued before stay valid until they expire, ${formerNotAfter} at the latest`,
  )
  const secret = rootKey ?? key
  if (secret !== undefined) printLine(`remove ${secret} from this host again`)
}

interface GivenAuthority {
  readonly certificatePem: string
  readonly privateKeyPem: string | null
}

function readAuthority(
  cert: string,
  key: string | undefined,
): GivenAuthority & Record<string, unknown> {
  const certificatePem = certificatesPem(readCertificates(cert))
  return { certificatePem, privateKeyPem: key === undefined ? null : readSecret(key) }
}

async function signedAuthority(
  options: PkiOptions & { readonly keepKey?: boolean; readonly days: number },
  rootKey: string,
): Promise<GivenAuthority & Record<string, unknown>> {
  const config = loadConfigOrFail(options.config)
  const { root, rootKeyPem } = await withOneLineErrors(() => readRoot(config.identity.ca, rootKey))
  const { issuingPem } = (await ask(options, 'certificates')) as ActiveCertificates
  if (issuingPem === null) {
    throw new CommandFailure(
      EXIT_FAILED,
      `${config.id}: the issuing authority of the cluster is not known there yet; retry once it has caught up`,
    )
  }
  const [present] = parseCertificates(issuingPem)
  const spki = present.native.publicKey.export({ type: 'spki', format: 'der' })
  const authority = await withOneLineErrors(() =>
    renewIssuingAuthority({
      root: { certificatePem: root.pem, privateKeyPem: rootKeyPem },
      presentPem: present.pem,
      publicKeySpki: options.keepKey === true ? Uint8Array.from(spki) : null,
      validity: limitValidity(root, systemClock.nowMs(), options.days * DAY_MS),
    }),
  )
  return { ...authority }
}

function readRoot(
  caPath: string,
  keyPath: string,
): { readonly root: Certificate; readonly rootKeyPem: string } {
  const rootKeyPem = readSecret(keyPath)
  return { root: rootOf(caPath, keyPath, rootKeyPem), rootKeyPem }
}

function readSecret(path: string): string {
  const { text, warning } = readSecretFile(path)
  if (warning !== null) printNote(`flotilla: warning: ${warning}`)
  return text
}

/**
 * The root certificate that belongs to the root key.
 * @throws {CertificateError} when no root certificate has this key.
 */
function rootOf(caPath: string, keyPath: string, keyPem: string): Certificate {
  const key = parsePrivateKey(keyPem)
  const anchors = readCertificates(caPath, BUNDLE_CERTIFICATES_MAX)
  // The root that expires last, because the new authority must not be valid longer than its root
  // certificate.
  const [root] = anchors
    .filter(({ isAuthority, native }) => isAuthority && native.checkPrivateKey(key))
    .sort((a, b) => b.notAfterMs - a.notAfterMs)
  if (root !== undefined) return root
  throw new CertificateError(
    'key-mismatch',
    `${keyPath} is not the key of any CA certificate in ${caPath}; name the root key created by cluster init`,
  )
}

/** Issues a certificate for a key that stays on this host; creates the key if it is missing. */
export async function issueExternalCertificate(
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
  const privateKeyPem = await withOneLineErrors(() =>
    existsSync(keyPath) ? readSecretFile(keyPath).text : generatePrivateKeyPem(),
  )
  const requestPem = await withOneLineErrors(() =>
    createCertificateRequest({ privateKeyPem, id: options.name }),
  )
  const answer = (await ask(options, 'issue', {
    requestPem,
    hosts: options.host,
    usages: options.usage.length === 0 ? ['client'] : options.usage,
    days: options.days,
  })) as { readonly certificatePem: string; readonly notAfterMs: number }
  await withOneLineErrors(() => {
    // Writes a new key only after the certificate was issued, so that invalid options leave no key
    // file behind.
    if (!existsSync(keyPath)) writeSecretFile(keyPath, privateKeyPem)
    writePublicFile(options.out, answer.certificatePem)
  })
  const notAfter = isoTime(answer.notAfterMs)
  if (options.json === true) {
    printJson({ cert: options.out, key: keyPath, notAfter })
    return
  }
  printLine(`certificate ${options.out}, key ${keyPath}, until ${notAfter}`)
  printLine('it is not renewed automatically; issue a new one in time')
}

/**
 * Converts a fault of a file or certificate to a failure with one line, because the operator must
 * correct the file.
 */
export async function withOneLineErrors<T>(step: () => T | Promise<T>): Promise<T> {
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

/** Fabric API operation of each `flotilla pki` command: HTTP method and last part of the path. */
const operations = {
  certificates: ['GET', 'certificates'],
  renew: ['POST', 'renew'],
  reload: ['POST', 'reload'],
  'renew-member': ['POST', 'renew-member'],
  'issuing-authority': ['POST', 'issuing-authority'],
  issue: ['POST', 'issue'],
} as const

async function ask(
  options: ConnectionOptions,
  operation: keyof typeof operations,
  body?: Readonly<Record<string, unknown>>,
  timeoutMs?: number,
): Promise<unknown> {
  const [method, name] = operations[operation]
  const answer = await createOperationCaller(options)({
    method,
    path: `/fabric/v1/pki/${name}`,
    isOfAny: operation !== 'renew' && operation !== 'reload',
    ...(body === undefined ? {} : { body }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  })
  const controller = options.url ?? options.config ?? ''
  // @guard answers-of-a-hostile-server--pki
  return validateResponse<unknown>(controller, pkiShapes[operation], answer)
}

const certificate = objectShape({ subject: textShape, notAfterMs: timeShape })
const inForce = objectShape({
  certificates: listShape(certificate),
  issuingPem: nullableShape(textShape),
  isRenewedHere: optionalShape(booleanShape),
  renewAtMs: optionalShape(nullableShape(timeShape)),
  refused: nullableShape(textShape),
  alarm: nullableShape(textShape),
  serverCertificates: optionalShape(
    listShape(
      objectShape({
        path: textShape,
        certificate: nullableShape(certificate),
        refused: nullableShape(textShape),
      }),
    ),
  ),
})

/** Shapes of the responses to the commands of `flotilla pki`. */
const pkiShapes = {
  certificates: inForce,
  renew: inForce,
  reload: inForce,
  'renew-member': objectShape({ id: textShape, certificatePem: textShape, notAfterMs: timeShape }),
  'issuing-authority': objectShape({ notAfterMs: timeShape, formerNotAfterMs: timeShape }),
  issue: objectShape({ certificatePem: textShape, notAfterMs: timeShape }),
} as const
