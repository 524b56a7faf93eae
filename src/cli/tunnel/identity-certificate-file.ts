import { realpathSync } from 'node:fs'

import { isJsonObject, parseJsonOrNull } from '../../lib/text/json-value.ts'
import { createCertificateRequest } from '../../pki/authority/certificate-request.ts'
import { certificateLifetime } from '../../pki/authority/renewal.ts'
import { type Certificate, checkKeyMatches, parseCertificates } from '../../pki/certificate.ts'
import { readSecretFile, writePublicFile, writeSecretFile } from '../../pki/secret-file.ts'
import type { IdentityCertificate, IdentityCredential } from '../../tunnel/identity-certificate.ts'
import { IDENTITY_FILE_BYTES_MAX, resolveIdentityPath } from './identity-file.ts'

/**
 * Field of `id` for a renewed certificate that is not in use yet. Other programs that read identity
 * files ignore this field.
 */
const RENEWED = 'renewedCert'
const PEM = 'pem:'

interface StoredCertificate {
  readonly certificatePem: string
  readonly leaf: Certificate
  readonly fingerprint: string
}

/** The certificate in an identity file. Changing it keeps all other fields of the file. */
export class IdentityCertificateFile implements IdentityCertificate {
  readonly #path: string
  readonly #identity: Pick<IdentityCredential, 'privateKeyPem' | 'caPem'>
  #current: StoredCertificate
  #renewed: StoredCertificate | null

  /** @param path path of the identity file that contains this identity. */
  constructor(path: string, { certificatePem, privateKeyPem, caPem }: IdentityCredential) {
    this.#path = path
    this.#identity = { privateKeyPem, caPem }
    this.#current = storedCertificate(certificatePem)
    this.#renewed = this.#readRenewed()
  }

  get credential(): IdentityCredential {
    return { ...this.#identity, certificatePem: this.#current.certificatePem }
  }

  get fingerprint(): string {
    return this.#current.fingerprint
  }

  get renewAtMs(): number {
    const { leaf } = this.#current
    // The time of renewal depends only on the certificate, not on the current time.
    return certificateLifetime(leaf, leaf.notBeforeMs).renewAtMs
  }

  get notAfterMs(): number {
    return this.#current.leaf.notAfterMs
  }

  get renewed(): StoredCertificate | null {
    return this.#renewed
  }

  async request(identityId: string): Promise<string> {
    const { privateKeyPem } = this.#identity
    return await createCertificateRequest({ privateKeyPem, id: identityId })
  }

  store(certificatePem: string): void {
    const renewed = storedCertificate(certificatePem)
    // @guard renewed-certificate--key
    checkKeyMatches(renewed.leaf, this.#identity.privateKeyPem)
    this.#change((id) => ({ ...id, [RENEWED]: PEM + certificatePem }))
    this.#renewed = renewed
  }

  adopt(): void {
    if (this.#renewed === null) return
    this.#current = this.#renewed
    const { certificatePem } = this.#renewed
    this.#change(({ [RENEWED]: _, ...id }) => {
      const { cert } = id
      if (typeof cert !== 'string' || cert.startsWith(PEM)) {
        return { ...id, cert: PEM + certificatePem }
      }
      writePublicFile(resolveIdentityPath(this.#path, cert), certificatePem)
      return id
    })
    this.#renewed = null
  }

  /** Writes the file with changed fields below `id`. */
  #change(
    changed: (id: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>,
  ): void {
    const path = realpathSync(this.#path)
    const file = parseJsonOrNull(readSecretFile(path, IDENTITY_FILE_BYTES_MAX).text)
    const id = isJsonObject(file) ? file['id'] : null
    if (!isJsonObject(file) || !isJsonObject(id)) {
      throw new Error(`${this.#path} is no identity file any more`)
    }
    writeSecretFile(path, `${JSON.stringify({ ...file, id: changed(id) }, null, 2)}\n`)
  }

  /**
   * The renewed certificate; null if there is none or it cannot be used. In the second case, the
   * tunnel renews the certificate again.
   */
  #readRenewed(): StoredCertificate | null {
    const file = parseJsonOrNull(readSecretFile(this.#path, IDENTITY_FILE_BYTES_MAX).text)
    const id = isJsonObject(file) ? file['id'] : null
    const text = isJsonObject(id) ? id[RENEWED] : null
    if (typeof text !== 'string' || !text.startsWith(PEM)) return null
    try {
      const renewed = storedCertificate(text.slice(PEM.length))
      checkKeyMatches(renewed.leaf, this.#identity.privateKeyPem)
      return renewed
    } catch {
      return null
    }
  }
}

function storedCertificate(certificatePem: string): StoredCertificate {
  const [leaf] = parseCertificates(certificatePem)
  return { certificatePem, leaf, fingerprint: leaf.sha1 }
}
