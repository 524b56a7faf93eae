import { status } from '@grpc/grpc-js'

import type { Member } from '../../../proto/gen/membership_pb.ts'
import type { Hello } from '../../../proto/gen/mesh_pb.ts'
import type { PeerCaller } from '../peer-channel.ts'
import { type Certificate, leafControllerId, parseCertificate } from '../../pki/certificate.ts'
import type { NodeId } from '../../raft/types.ts'
import type { RollbackDetector } from './rollback-detector.ts'

/** Facts that this member is sure of, and holds every peer to. */
export interface PeerTrust {
  readonly selfId: NodeId
  readonly clusterId: string
  readonly generation: number
  readonly trustDomain: string
  /** The configuration in force. */
  readonly members: ReadonlyMap<NodeId, Member>
}

/** Claim of a peer: what it has shown on a stream so far. */
export interface PeerClaim {
  /**
   * DER of the leaf whose key TLS has proven, in a chain that TLS has verified against the cluster
   * CA; null when it has not.
   */
  readonly leafDer: Uint8Array | null
  /** Its first frame; null when that was something else; undefined while none has come. */
  readonly hello: Hello | null | undefined
  /** Peer that we dialled; null when the peer dialled us. */
  readonly expectedId: NodeId | null
}

export type RefusalReason =
  | 'no-certificate'
  | 'wrong-identity'
  | 'not-a-member'
  | 'self'
  | 'unexpected-peer'
  | 'key-not-pinned'
  | 'no-hello'
  | 'other-cluster'
  | 'other-generation'
  | 'other-node'
  | 'other-store'
  | 'hello-too-large'
  | 'rolled-back'
  | 'superseded'

export type Verdict =
  | { readonly ok: true; readonly id: NodeId; readonly leafPem: string }
  | {
      readonly ok: false
      readonly reason: RefusalReason
      readonly status: status
      /** The peer's proven id once that is known. */
      readonly id: NodeId | null
      /**
       * One sentence's end, to follow the peer's name; never holds more than 128 characters of the
       * peer's making.
       */
      readonly because: string
    }

/** Bounds of what a Hello may carry into the controllers list. */
export const HELLO_LIMITS = {
  textBytesMax: 256,
  urlBytesMax: 2048,
  apiAddressesMax: 32,
  certificateBytesMax: 64 * 1024,
} as const

/**
 * The one place where a peer is believed or not. Order: proven certificate, identity in it,
 * membership, pinned key, and, once the first frame is here, what that binds the stream to. With
 * `hello` undefined the certificate alone is judged (before anything is sent to a callee).
 *
 * A version or feature level newer than ours is no reason to refuse: members of two releases work
 * together, and what a newer one says that we do not know is passed over frame by frame.
 */
export function judgePeer(claim: PeerClaim, roster: PeerTrust): Verdict {
  if (claim.leafDer === null) {
    return refuse('no-certificate', null, 'it presented no certificate of the cluster CA')
  }
  let id: NodeId
  let leaf
  try {
    leaf = parsedLeaf(claim.leafDer)
    id = leafControllerId(leaf, roster.trustDomain)
  } catch (error) {
    const detail = error instanceof Error ? error.message : 'it cannot be read'
    return refuse('wrong-identity', null, `its certificate names no controller: ${brief(detail)}`)
  }
  if (claim.expectedId !== null && id !== claim.expectedId) {
    return refuse('unexpected-peer', id, `expected ${claim.expectedId} at this address`)
  }
  if (id === roster.selfId) {
    return refuse(
      'self',
      id,
      'the address belongs to this controller itself; an address or identity is used twice',
    )
  }
  const member = roster.members.get(id)
  if (member === undefined) {
    return refuse('not-a-member', id, 'not a member of this cluster')
  }
  if (!equalBytes(leaf.publicKeySha256, member.publicKeySha256)) {
    return refuse('key-not-pinned', id, 'its key is not the one pinned in its member record')
  }
  if (claim.hello === undefined) return { ok: true, id, leafPem: leaf.pem }
  if (claim.hello === null) return refuse('no-hello', id, 'its first frame was no Hello')
  return judgeHello(claim.hello, member, roster) ?? { ok: true, id, leafPem: leaf.pem }
}

/**
 * A connection is judged again with every change of members; its leaf, which is never written to,
 * is parsed once.
 */
const parsedLeaves = new WeakMap<Uint8Array, Certificate>()

function parsedLeaf(leafDer: Uint8Array): Certificate {
  const known = parsedLeaves.get(leafDer)
  if (known !== undefined) return known
  const leaf = parseCertificate(leafDer)
  parsedLeaves.set(leafDer, leaf)
  return leaf
}

/**
 * A controller that asks outside the streams: its certificate alone is judged, membership is not. A
 * member's streams are judged by {@link judgePeer}.
 */
export function judgeCaller(
  leafDer: Uint8Array | null,
  roster: PeerTrust,
): { readonly ok: true; readonly caller: PeerCaller } | (Verdict & { readonly ok: false }) {
  if (leafDer === null) {
    return refuse('no-certificate', null, 'it presented no certificate of the cluster CA')
  }
  try {
    const leaf = parsedLeaf(leafDer)
    // @guard leaf-without-spiffe-id
    const id = leafControllerId(leaf, roster.trustDomain)
    const { publicKeySha256, pem } = leaf
    return { ok: true, caller: { id, publicKeySha256, leafPem: pem, isMember: false } }
  } catch (error) {
    const detail = error instanceof Error ? error.message : 'it cannot be read'
    return refuse('wrong-identity', null, `its certificate names no controller: ${brief(detail)}`)
  }
}

/**
 * Before a byte of HTTP/2: whether a caller may speak at the port for peers at all, as controllers
 * of this cluster's CA may, and as whom.
 */
export function judgeConnection(
  leafDer: Uint8Array,
  roster: PeerTrust,
):
  | { readonly ok: true; readonly standing: { readonly id: NodeId; readonly isMember: boolean } }
  | (Verdict & { readonly ok: false }) {
  const verdict = judgeCaller(leafDer, roster)
  // @guard http2-at-the-mesh--controllers
  if (!verdict.ok) return verdict
  const claim = { leafDer, hello: undefined, expectedId: null }
  return {
    ok: true,
    standing: { id: verdict.caller.id, isMember: judgePeer(claim, roster).ok },
  }
}

function judgeHello(hello: Hello, member: Member, roster: PeerTrust): Verdict | null {
  const id = member.id
  if (isTooLarge(hello)) {
    return refuse('hello-too-large', id, 'its Hello frame is too large')
  }
  if (hello.clusterId !== roster.clusterId) {
    return refuse('other-cluster', id, `it belongs to cluster ${quoted(hello.clusterId)}`)
  }
  if (hello.generation !== roster.generation) {
    return refuse(
      'other-generation',
      id,
      `it belongs to cluster generation ${hello.generation}, expected ${roster.generation}`,
    )
  }
  if (hello.nodeId !== id) {
    return refuse('other-node', id, `it identifies itself as ${quoted(hello.nodeId)}`)
  }
  if (hello.storeId.length !== 16 || !equalBytes(hello.storeId, member.storeId)) {
    return refuse(
      'other-store',
      id,
      'its data folder is not the one in its member record (it was wiped, restored or copied)',
    )
  }
  return null
}

const STATUS: Readonly<Record<RefusalReason, status>> = {
  'no-certificate': status.UNAUTHENTICATED,
  'wrong-identity': status.UNAUTHENTICATED,
  'not-a-member': status.PERMISSION_DENIED,
  self: status.PERMISSION_DENIED,
  'unexpected-peer': status.PERMISSION_DENIED,
  'key-not-pinned': status.PERMISSION_DENIED,
  'no-hello': status.INVALID_ARGUMENT,
  'other-cluster': status.FAILED_PRECONDITION,
  'other-generation': status.FAILED_PRECONDITION,
  'other-node': status.FAILED_PRECONDITION,
  'other-store': status.FAILED_PRECONDITION,
  'hello-too-large': status.INVALID_ARGUMENT,
  'rolled-back': status.FAILED_PRECONDITION,
  superseded: status.FAILED_PRECONDITION,
}

export function isRefusalReason(text: string): text is RefusalReason {
  return Object.hasOwn(STATUS, text)
}

/**
 * A member whose certificate and Hello are right, but whose disk is not what it has been: see
 * witness.ts.
 */
export function judgeHistory(
  id: NodeId,
  hello: Hello,
  isCaller: boolean,
  witness: RollbackDetector,
): (Verdict & { readonly ok: false }) | null {
  const fault = witness.judge(id, hello, isCaller)
  switch (fault) {
    case null:
      return null
    case 'rolled-back':
      return refuse(
        fault,
        id,
        'its data folder was rolled back (restored from a backup or snapshot) and must not vote',
      )
    case 'superseded':
      return refuse(fault, id, 'a later process has started on a copy of its data folder')
  }
}

function refuse(
  reason: RefusalReason,
  id: NodeId | null,
  because: string,
): Verdict & { readonly ok: false } {
  return { ok: false, reason, status: STATUS[reason], id, because }
}

function isTooLarge(hello: Hello): boolean {
  const { textBytesMax, urlBytesMax, apiAddressesMax, certificateBytesMax } = HELLO_LIMITS
  return (
    hello.version.length > textBytesMax ||
    hello.advertise.length > textBytesMax ||
    hello.certificatePem.length > certificateBytesMax ||
    hello.apiAddresses.length > apiAddressesMax ||
    hello.apiAddresses.some(
      ({ api, url, version }) =>
        api.length > textBytesMax || url.length > urlBytesMax || version.length > textBytesMax,
    )
  )
}

/** The two are public values; no constant time is needed. */
function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.length > 0 && Buffer.compare(a, b) === 0
}

/** Text of the peer's making, cut and escaped, so that it cannot forge a log line. */
function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 100))
}

function brief(text: string): string {
  return text.slice(0, 120).replaceAll(/[^\x20-\x7e]/g, '?')
}
