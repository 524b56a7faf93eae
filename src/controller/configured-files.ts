import { hash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'

import type { ChangedFile } from '../api/host/reload-control.ts'
import type { ControllerConfig } from '../config/controller/options.ts'
import { PEM_BYTES_MAX } from '../pki/certificate.ts'

/** A file that an option names. */
interface NamedFile {
  /** Name of the option, such as `serverCertificates[0].cert`. */
  readonly key: string
  readonly path: string
  /** False if the controller reads the file only at the start. */
  readonly isReloaded: boolean
}

/** The PEM files of a configuration, in the order of its options. */
function namedFiles({
  identity,
  serverCertificates,
  api,
  backup,
}: ControllerConfig): readonly NamedFile[] {
  const file = (key: string, path: string | null, isReloaded = true): NamedFile[] =>
    path === null ? [] : [{ key, path, isReloaded }]
  return [
    ...file('identity.cert', identity.cert),
    ...file('identity.key', identity.key),
    ...file('identity.ca', identity.ca),
    ...serverCertificates.flatMap(({ cert, key }, at) => [
      ...file(`serverCertificates[${at}].cert`, cert),
      ...file(`serverCertificates[${at}].key`, key),
    ]),
    ...file('api.signerCa', api.signerCa, false),
    ...file('backup.recipient', backup.recipient),
  ]
}

/**
 * Finds out which of the configuration's files have changed since the controller last used them.
 */
export class ConfiguredFiles {
  /** SHA-256 of the content that the controller uses, by path. */
  readonly #digests: Map<string, string>

  /** Records the present content of the files as the content that the controller uses. */
  constructor(config: ControllerConfig) {
    this.#digests = new Map(namedFiles(config).map(({ path }) => [path, contentDigest(path)]))
  }

  /**
   * The files whose content has changed since the start or since the last reload that accepted
   * them. The result omits a file that a new option names.
   * @param rejected paths of certificate files that the reload has rejected.
   */
  noteReload(config: ControllerConfig, rejected: ReadonlySet<string>): readonly ChangedFile[] {
    return namedFiles(config).flatMap(({ key, path, isReloaded }) => {
      const digest = contentDigest(path)
      const before = this.#digests.get(path) ?? digest
      if (isReloaded && !rejected.has(path)) this.#digests.set(path, digest)
      else this.#digests.set(path, before)
      if (before === digest) return []
      const isRejected = rejected.has(path)
      return [{ key, path, isInForce: isReloaded && !isRejected, isRejected }]
    })
  }
}

/** Hash of the file's content; its size if it is too large, and '' if it cannot be read. */
function contentDigest(path: string): string {
  try {
    const { size } = statSync(path)
    return size > PEM_BYTES_MAX ? `${size} bytes` : hash('sha256', readFileSync(path))
  } catch {
    return ''
  }
}
