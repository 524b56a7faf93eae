import type { MeshIdentity } from '../cluster/mesh/mesh-service.ts'
import { parseCertificates } from '../pki/certificate.ts'
import type { Credentials } from './start/check-certificates.ts'

/** The certificates that the controller uses now. A renewal or a reload replaces them. */
export class ActiveIdentity {
  #caPem: string
  #leafPem: string

  constructor({ caPem, chain }: Credentials) {
    this.#caPem = caPem
    this.#leafPem = chain[0].pem
  }

  get caPem(): string {
    return this.#caPem
  }

  get leafPem(): string {
    return this.#leafPem
  }

  renew({ caPem, certificatePem }: MeshIdentity): void {
    this.#caPem = caPem
    this.#leafPem = parseCertificates(certificatePem)[0].pem
  }
}
