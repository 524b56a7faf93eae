import type { MeshIdentity } from '../../src/cluster/mesh/mesh-service.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import type { NodeId } from '../../src/raft/types.ts'
import { controllerIdentity, createAuthority } from '../cluster/mesh-fixture.ts'

export interface Credentials {
  readonly identity: MeshIdentity
  readonly leafDer: Uint8Array
  readonly publicKeySha256: Uint8Array
}

/**
 * Certificates are slow to generate and not part of the simulation, so each process generates them
 * once, before time becomes virtual.
 */
export class TestCertificates {
  readonly #credentials: ReadonlyMap<NodeId, Credentials>

  private constructor(credentials: ReadonlyMap<NodeId, Credentials>) {
    this.#credentials = credentials
  }

  static async make(ids: readonly NodeId[]): Promise<TestCertificates> {
    const authority = await createAuthority()
    const credentials = new Map<NodeId, Credentials>()
    for (const id of ids) {
      const identity = await controllerIdentity(authority, id)
      const [leaf] = parseCertificates(identity.certificatePem)
      const der = Buffer.from(
        identity.certificatePem.split('-----')[2]?.replaceAll('\n', '') ?? '',
        'base64',
      )
      credentials.set(id, {
        identity,
        leafDer: Uint8Array.from(der),
        publicKeySha256: leaf.publicKeySha256,
      })
    }
    return new TestCertificates(credentials)
  }

  of(id: NodeId): Credentials {
    const found = this.#credentials.get(id)
    if (found === undefined) throw new Error(`no certificate was made for ${id}`)
    return found
  }
}
