import { create } from '@bufbuild/protobuf'

import { type Member, MemberSchema } from '../../proto/gen/membership_pb.ts'
import {
  CallResponseSchema,
  type ForwardFrame,
  type Hello,
  HelloSchema,
} from '../../proto/gen/mesh_pb.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { AddressBook } from '../../src/cluster/mesh/address-book.ts'
import type { Logger } from '../../src/cluster/logger.ts'
import type { MeshRefusal } from '../../src/cluster/mesh/mesh-refusal.ts'
import { Mesh } from '../../src/cluster/mesh/mesh.ts'
import type { MeshEvents } from '../../src/cluster/mesh/mesh-deps.ts'
import type { MeshIdentity } from '../../src/cluster/mesh/mesh-service.ts'
import type { RaftStreamFrame } from '../../src/cluster/message-codec.ts'
import {
  type CertificateWithKey,
  createIssuingAuthority,
  createRootAuthority,
  issueLeaf,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import { controllerSpiffeId } from '../../src/pki/spiffe.ts'
import type { NodeId } from '../../src/raft/types.ts'
import { PATIENCE_MS } from '../support/patience.ts'

export const TRUST_DOMAIN = 'test.flotilla'
export const CLUSTER_ID = 'c1'

export interface Authority {
  readonly caPem: string
  readonly issuer: CertificateWithKey
}

const validity = () => validityStartingAt(Date.now(), 60 * 60 * 1000)

export async function createAuthority(): Promise<Authority> {
  const root = await createRootAuthority({ commonName: 'test root', validity: validity() })
  const issuer = await createIssuingAuthority({
    commonName: 'test issuing',
    root,
    validity: validity(),
  })
  return { caPem: root.certificatePem, issuer }
}

export async function issueIdentity(
  authority: Authority,
  names: { readonly commonName: string; readonly uris: readonly string[] },
): Promise<MeshIdentity> {
  const leaf = await issueLeaf({
    issuer: authority.issuer,
    ...names,
    hosts: ['127.0.0.1'],
    validity: validity(),
    usages: ['server', 'client'],
  })
  return { ...leaf, caPem: authority.caPem }
}

export async function controllerIdentity(authority: Authority, id: string): Promise<MeshIdentity> {
  return await issueIdentity(authority, {
    commonName: id,
    uris: [controllerSpiffeId(TRUST_DOMAIN, id)],
  })
}

export function storeIdOf(id: string): Uint8Array {
  const bytes = new Uint8Array(16)
  bytes.set(new TextEncoder().encode(id.slice(0, 15)))
  bytes[15] = 1
  return bytes
}

export function memberOf(id: string, identity: MeshIdentity, address: string): Member {
  const [leaf] = parseCertificates(identity.certificatePem)
  return create(MemberSchema, {
    id,
    voter: true,
    address,
    storeId: storeIdOf(id),
    publicKeySha256: leaf.publicKeySha256,
  })
}

export function helloOf(id: string): Hello {
  return create(HelloSchema, {
    clusterId: CLUSTER_ID,
    generation: 1,
    nodeId: id,
    storeId: storeIdOf(id),
    boot: 1n,
    version: '1.0.0',
    featureLevel: 1,
    startedAtMs: 1_700_000_000_000n,
    apiAddresses: [{ api: 'edge-client', url: `https://${id}.test`, version: 'v1' }],
    advertise: `${id}.test:1`,
  })
}

/** Records log lines, for tests of messages to the operator. */
export class RecordedLog {
  readonly lines: string[] = []
  readonly log: Logger

  constructor() {
    const at = (level: string) => (fields: object, message: string) => {
      this.lines.push(`${level} ${message} ${JSON.stringify(fields)}`)
    }
    this.log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  }
}

export interface TestMesh {
  readonly id: NodeId
  readonly mesh: Mesh
  readonly port: number
  readonly log: RecordedLog
  readonly raft: { from: NodeId; content: RaftStreamFrame }[]
  readonly forward: { from: NodeId; frame: ForwardFrame['frame']; isAnswer: boolean }[]
  readonly links: { to: NodeId; isReady: boolean }[]
  readonly refusals: { by: NodeId; refusal: MeshRefusal }[]
  readonly book: AddressBook
}

export interface MeshChanges {
  readonly hello?: Partial<Hello>
  readonly clusterId?: string
  readonly bind?: string
  readonly advertise?: string
  readonly seeds?: readonly string[]
  readonly resolvers?: readonly string[]
  readonly lastAddressesFile?: string
}

export async function startMesh(
  id: NodeId,
  identity: MeshIdentity,
  members: readonly Member[],
  overrides: MeshChanges = {},
): Promise<TestMesh> {
  const log = new RecordedLog()
  const seen: Pick<TestMesh, 'raft' | 'forward' | 'links' | 'refusals'> = {
    raft: [],
    forward: [],
    links: [],
    refusals: [],
  }
  const events: MeshEvents = {
    onRaft: (from, content) => seen.raft.push({ from, content }),
    onForward: (from, frame, isAnswer) => seen.forward.push({ from, frame, isAnswer }),
    onCall: (caller, request, answer) => {
      const payload = new TextEncoder().encode(`${caller.id} asked ${request.method}`)
      answer(create(CallResponseSchema, { payload }))
    },
    onLink: (to, isReady) => seen.links.push({ to, isReady }),
    onPeers: () => undefined,
    onRefusedByPeer: (by, refusal) => seen.refusals.push({ by, refusal }),
    onAddresses: () => undefined,
  }
  const clusterId = overrides.clusterId ?? CLUSTER_ID
  const book = new AddressBook({
    selfId: id,
    clusterId,
    advertise: overrides.advertise ?? '127.0.0.1:1',
    identity,
    nowMs: Date.now(),
  })
  const { seeds = [], resolvers = [], lastAddressesFile = null } = overrides
  const mesh = new Mesh(
    {
      selfId: id,
      clusterId,
      generation: 1,
      trustDomain: TRUST_DOMAIN,
      bind: overrides.bind ?? '127.0.0.1:0',
      identity,
      hello: () => ({
        ...helloOf(id),
        ...(overrides.advertise === undefined ? {} : { claim: book.own }),
        ...overrides.hello,
      }),
      members,
      book,
      seeds,
      resolvers,
      lastAddressesFile,
    },
    { clock: systemClock, random: seededRandom(1), log: log.log },
    events,
  )
  const port = await mesh.start()
  return { id, mesh, port, log, book, ...seen }
}

/** Waits until the condition holds. @throws an error with `what` on a timeout. */
export async function until(
  what: string,
  condition: () => boolean,
  timeoutMs = PATIENCE_MS,
): Promise<void> {
  const end = performance.now() + timeoutMs
  while (!condition()) {
    if (performance.now() > end) throw new Error(`in ${timeoutMs} ms it did not happen: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
