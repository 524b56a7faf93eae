import { status } from '@grpc/grpc-js'

import type { Member } from '../../../proto/gen/membership_pb.ts'
import type { Hello } from '../../../proto/gen/mesh_pb.ts'
import type { PeerCaller } from '../peer-channel.ts'
import { type Certificate, leafControllerId, parseCertificate } from '../../pki/certificate.ts'
import type { NodeId } from '../../raft/types.ts'
import type { RollbackDetector } from './rollback-detector.ts'

/** Facts about this member and its cluster, with which this member compares every peer. */
export interface PeerVerificationFacts {
  readonly selfId: NodeId
  readonly clusterId: string
  readonly generation: number
  readonly trustDomain: string
  /** The members in the current configuration. */
  readonly members: ReadonlyMap<NodeId, Member>
}

/** The certificate and Hello that a peer has presented on a stream so far. */
export interface PeerHandshakeInput {
  /**
   * DER of the leaf certificate, after TLS has verified that the certificate is from the cluster CA
   * and that the peer has its key; null without such a certificate.
   */
  readonly leafDer: Uint8Array | null
  /**
   * The first frame; null if it was not a Hello or did not arrive in time; undefined before the
   * first frame.
   */
  readonly hello: Hello | null | undefined
  /** Id of the peer that this member dialed; null for an incoming connection. */
  readonly expectedId: NodeId | null
}

export type PeerRefusalReason =
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

export type PeerVerdict =
  | { readonly ok: true; readonly id: NodeId; readonly leafPem: string }
  | {
      readonly ok: false
      readonly reason: PeerRefusalReason
      readonly status: status
      /** The proven id of the peer, if known. */
      readonly id: NodeId | null
      /**
       * Rest of a sentence that starts with the peer's name. At most 128 of its characters are
       * chosen by the peer.
       */
      readonly detail: string
    }

/** Limits for the fields of a Hello that appear in the list of controllers. */
export const HELLO_LIMITS = {
  /**
   * Maximum characters of the version, the advertised address, or the name and version of an API; a
   * peer that sends more is refused.
   */
  textCharactersMax: 256,
  /** Maximum characters of the URL of one API; a peer that sends more is refused. */
  urlCharactersMax: 2048,
  /** Maximum API addresses in one Hello; a peer that sends more is refused. */
  apiAddressesMax: 32,
  /** Maximum characters of the PEM certificate in a Hello; a peer that sends more is refused. */
  certificateCharactersMax: 64 * 1024,
} as const

/**
 * Decides whether to trust the peer of a stream. It checks, in this order: the proven certificate,
 * its identity, membership, the pinned key, and the first frame, which binds the stream to a store.
 * If `hello` is undefined, it checks everything except the first frame: the dialing member does
 * that before it sends anything. A newer release or feature level is no reason for a refusal:
 * members of two releases work together and ignore unknown frames.
 */
export function verifyPeer(claim: PeerHandshakeInput, roster: PeerVerificationFacts): PeerVerdict {
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
  return verifyHello(claim.hello, member, roster) ?? { ok: true, id, leafPem: leaf.pem }
}

/**
 * Caches the parsed leaf by its DER bytes, which are never modified: the mesh verifies connections
 * again after every change of members.
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
 * Verifies the caller of a single request outside of streams by its certificate only, not by
 * membership. {@link verifyPeer} checks the streams of members.
 */
export function verifyCaller(
  leafDer: Uint8Array | null,
  roster: PeerVerificationFacts,
): { readonly ok: true; readonly caller: PeerCaller } | (PeerVerdict & { readonly ok: false }) {
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
 * Decides, before the first byte of HTTP/2, whether a caller may use the mesh port, and with which
 * identity. Every controller with a certificate of the cluster CA may use it.
 */
export function verifyConnection(
  leafDer: Uint8Array,
  roster: PeerVerificationFacts,
):
  | { readonly ok: true; readonly standing: { readonly id: NodeId; readonly isMember: boolean } }
  | (PeerVerdict & { readonly ok: false }) {
  const verdict = verifyCaller(leafDer, roster)
  // @guard http2-at-the-mesh--controllers
  if (!verdict.ok) return verdict
  const claim = { leafDer, hello: undefined, expectedId: null }
  return {
    ok: true,
    standing: { id: verdict.caller.id, isMember: verifyPeer(claim, roster).ok },
  }
}

function verifyHello(
  hello: Hello,
  member: Member,
  roster: PeerVerificationFacts,
): PeerVerdict | null {
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

const STATUS: Readonly<Record<PeerRefusalReason, status>> = {
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

export function isPeerRefusalReason(text: string): text is PeerRefusalReason {
  return Object.hasOwn(STATUS, text)
}

/**
 * Detects a rolled-back or copied disk of a member with a valid certificate and Hello; see
 * rollback-detector.ts.
 */
export function detectRollback(
  id: NodeId,
  hello: Hello,
  isCaller: boolean,
  witness: RollbackDetector,
): (PeerVerdict & { readonly ok: false }) | null {
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
  reason: PeerRefusalReason,
  id: NodeId | null,
  detail: string,
): PeerVerdict & { readonly ok: false } {
  return { ok: false, reason, status: STATUS[reason], id, detail }
}

function isTooLarge(hello: Hello): boolean {
  const { textCharactersMax, urlCharactersMax, apiAddressesMax, certificateCharactersMax } =
    HELLO_LIMITS
  return (
    hello.version.length > textCharactersMax ||
    hello.advertise.length > textCharactersMax ||
    hello.certificatePem.length > certificateCharactersMax ||
    hello.apiAddresses.length > apiAddressesMax ||
    hello.apiAddresses.some(
      ({ api, url, version }) =>
        api.length > textCharactersMax ||
        url.length > urlCharactersMax ||
        version.length > textCharactersMax,
    )
  )
}

/** The comparison need not take constant time, because both values are public. */
function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.length > 0 && Buffer.compare(a, b) === 0
}

/** Text that a peer chose, shortened and escaped, so that it cannot forge a log line. */
function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 100))
}

function brief(text: string): string {
  return text.slice(0, 120).replaceAll(/[^\x20-\x7e]/g, '?')
}
