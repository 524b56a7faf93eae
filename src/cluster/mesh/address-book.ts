import {
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto'

import { clone, create, equals, toBinary } from '@bufbuild/protobuf'

import type { Member } from '../../../proto/gen/membership_pb.ts'
import { type AddressClaim, AddressClaimSchema } from '../../../proto/gen/mesh_pb.ts'
import { parseHostPort } from '../../lib/text/names.ts'
import { parseCertificates } from '../../pki/certificate.ts'
import type { NodeId } from '../../raft/types.ts'
import type { MeshIdentity } from './mesh-service.ts'

interface AddressBookOptions {
  readonly selfId: NodeId
  readonly clusterId: string
  /** host:port at which peers reach this member. */
  readonly advertise: string
  readonly identity: MeshIdentity
  readonly nowMs: number
  /**
   * host:port by id. They take precedence over the member records, because an operator's setting is
   * more reliable than a stale record.
   */
  readonly hints?: ReadonlyMap<NodeId, string>
}

/**
 * Limits for a claim (a signed statement of a member about its address); a claim above them is
 * ignored.
 */
export const ADDRESS_CLAIM_LIMITS = {
  /** Maximum bytes of the public key in an address claim. */
  publicKeyBytesMax: 4096,
  /** Maximum bytes of the signature in an address claim. */
  signatureBytesMax: 1024,
  /** Maximum characters of the address in an address claim. */
  addressCharactersMax: 512,
} as const
const DOMAIN = 'flotilla address claim 1'

/**
 * Addresses of members. Keys identify members, so an address is only a hint. A claim from any
 * source counts only if the member's pinned key signed it. Seed probing, hints and the member
 * records supply further addresses. Works without a quorum.
 */
export class AddressBook {
  readonly #options: AddressBookOptions
  readonly #claims = new Map<NodeId, AddressClaim>()
  /**
   * Addresses at which seed probing found a member's certificate. The mesh uses an entry until the
   * member itself reports its address.
   */
  readonly #seen = new Map<NodeId, string>()
  #identity: MeshIdentity
  #own: AddressClaim
  #members: ReadonlyMap<NodeId, Member> = new Map()

  constructor(options: AddressBookOptions) {
    this.#options = options
    this.#identity = options.identity
    this.#own = this.#sign(BigInt(options.nowMs))
  }

  /** The claim that this member signed about its own address. */
  get own(): AddressClaim {
    return this.#own
  }

  /** Valid claims of the current members, with this member's own claim first. */
  claims(): AddressClaim[] {
    return [this.#own, ...this.#claims.values()]
  }

  /** Signs this member's own claim again, because the key may have changed. */
  setIdentity(identity: MeshIdentity): void {
    this.#identity = identity
    this.#own = this.#sign(this.#own.issuedAtMs + 1n)
  }

  /** Drops claims of former members and of keys that are not pinned. */
  setMembers(members: ReadonlyMap<NodeId, Member>): void {
    this.#members = members
    for (const [id, claim] of Array.from(this.#claims)) {
      if (!this.#isPinned(claim)) this.#claims.delete(id)
    }
    for (const id of Array.from(this.#seen.keys())) if (!members.has(id)) this.#seen.delete(id)
  }

  /**
   * Accepts a valid claim.
   * @returns whether the claim is newer than the known one and signed by the key in the member
   * record.
   */
  take(claim: AddressClaim | undefined): boolean {
    if (claim === undefined || !isWellFormed(claim)) return false
    const known = claim.nodeId === this.#options.selfId ? this.#own : this.#claims.get(claim.nodeId)
    if (known !== undefined && claim.issuedAtMs <= known.issuedAtMs) return false
    if (!this.#isPinned(claim) || !this.#isSigned(claim)) return false
    if (claim.nodeId === this.#options.selfId) {
      // A peer still has a claim that this member signed while the clock of its host was ahead. The
      // current claim must be newer than that one.
      this.#own = this.#sign(claim.issuedAtMs + 1n)
      return true
    }
    this.#claims.set(claim.nodeId, clone(AddressClaimSchema, claim))
    this.#seen.delete(claim.nodeId)
    return known === undefined || !equals(AddressClaimSchema, known, claim)
  }

  /**
   * Records that the member has just proven its certificate at this address. @returns whether the
   * address is new.
   */
  noteSeen(id: NodeId, address: string): boolean {
    if (this.#seen.get(id) === address) return false
    this.#seen.set(id, address)
    return true
  }

  /**
   * Addresses to dial, best first: the address where seed probing found the member, the address
   * that the member claims, the operator's hint, and the address in the member record.
   */
  addressesOf(id: NodeId): readonly string[] {
    const found = [
      this.#seen.get(id) ?? '',
      this.#claims.get(id)?.address ?? '',
      this.#options.hints?.get(id) ?? '',
      this.#members.get(id)?.address ?? '',
    ]
    return [...new Set(found.filter((address) => address !== ''))]
  }

  /** The address that the member advertises; null if it has reported none. */
  advertisedBy(id: NodeId): string | null {
    const address = this.#claims.get(id)?.address ?? ''
    return address === '' ? null : address
  }

  #isPinned({ nodeId, publicKeySpki }: AddressClaim): boolean {
    const pin = this.#members.get(nodeId)?.publicKeySha256
    if (pin?.length !== 32) return false
    return createHash('sha256').update(publicKeySpki).digest().equals(pin)
  }

  #isSigned(claim: AddressClaim): boolean {
    try {
      const key = createPublicKey({
        key: Buffer.from(claim.publicKeySpki),
        format: 'der',
        type: 'spki',
      })
      return verify(algorithmOf(key.asymmetricKeyType), this.#text(claim), key, claim.signature)
    } catch {
      return false
    }
  }

  #sign(issuedAtMs: bigint): AddressClaim {
    const { selfId: nodeId, advertise: address } = this.#options
    const { key, publicKeySpki } = signerOf(this.#identity)
    const claim = create(AddressClaimSchema, { nodeId, address, issuedAtMs, publicKeySpki })
    claim.signature = sign(algorithmOf(key.asymmetricKeyType), this.#text(claim), key)
    return claim
  }

  /**
   * The text that the signature of a claim covers. It names its purpose and the cluster, so that a
   * signature made with this key for another purpose is never a valid claim.
   */
  #text({ nodeId, address, issuedAtMs, publicKeySpki }: AddressClaim): Uint8Array {
    const bare = create(AddressClaimSchema, { nodeId, address, issuedAtMs, publicKeySpki })
    const prefix = Buffer.from(`${DOMAIN}\n${this.#options.clusterId}\n`)
    return Buffer.concat([prefix, toBinary(AddressClaimSchema, bare)])
  }
}

interface Signer {
  readonly key: KeyObject
  readonly publicKeySpki: Uint8Array
}

/** The signers are cached, because parsing the PEM files costs much more than signing. */
const signers = new WeakMap<MeshIdentity, Signer>()

function signerOf(identity: MeshIdentity): Signer {
  const known = signers.get(identity)
  if (known !== undefined) return known
  const [leaf] = parseCertificates(identity.certificatePem)
  const publicKeySpki = leaf.native.publicKey.export({ type: 'spki', format: 'der' })
  const signer = { key: createPrivateKey(identity.privateKeyPem), publicKeySpki }
  signers.set(identity, signer)
  return signer
}

/**
 * ECDSA and RSA (PKCS #1 1.5) sign a SHA-256 digest; Ed25519 and Ed448 hash the text themselves.
 */
function algorithmOf(keyType: string | undefined): string | null {
  return keyType === 'ed25519' || keyType === 'ed448' ? null : 'sha256'
}

function isWellFormed(claim: AddressClaim): boolean {
  return (
    claim.publicKeySpki.length <= ADDRESS_CLAIM_LIMITS.publicKeyBytesMax &&
    claim.signature.length <= ADDRESS_CLAIM_LIMITS.signatureBytesMax &&
    claim.address.length <= ADDRESS_CLAIM_LIMITS.addressCharactersMax &&
    parseHostPort(claim.address) !== null
  )
}
