import { create, toBinary } from '@bufbuild/protobuf'

import { CommandKind, FormSchema, type SeedRecord } from '../../proto/gen/command_pb.ts'
import { ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import { JoinTickets } from '../../src/cluster/membership/join-tickets.ts'
import { Keyring } from '../../src/cluster/secrets/keyring.ts'
import type { SecretRotationDeps } from '../../src/cluster/secrets/secret-rotation.ts'
import { createBootstrapRecords } from '../../src/cluster/secrets/wrap-secrets.ts'
import { StateMachine } from '../../src/fsm/state-machine.ts'
import type { Clock } from '../../src/lib/clock.ts'
import { Problem } from '../../src/lib/problems.ts'
import { newOpaqueId } from '../../src/lib/random.ts'
import {
  type CertificateWithKey,
  createIssuingAuthority,
  createRootAuthority,
  issueControllerCertificate,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import type { ClusterView, MemberView } from '../../src/ports/cluster-view.ts'
import type { AppliedProposal, ProposalInput, Proposer } from '../../src/ports/proposer.ts'
import { MemoryStateStore } from '../../src/store/state/memory-state-store.ts'
import { RecordedLog } from './mesh-fixture.ts'
import { anySystem, commandData } from '../support/commands.ts'

export const startMs = Date.now()
export const TRUST_DOMAIN = 'test.internal'
export const CLUSTER_ID = '0190b0c6-0000-7000-8000-000000000000'
export const OVERLAP_MS = 30 * 60_000

class TestClock implements Clock {
  ms = startMs
  nowMs(): number {
    return this.ms
  }
  monotonicMs(): number {
    return this.ms
  }
}

export interface TestMember {
  readonly id: string
  readonly leaf: CertificateWithKey
  readonly keyring: Keyring
  readonly desk: JoinTickets
  readonly rotation: SecretRotationDeps
}

/**
 * Controllers that share one real state machine, in which proposals are committed immediately. Each
 * controller decrypts the secrets with its own key. `beforePropose` runs between two steps of a
 * controller.
 */
export class SecretsCluster implements Proposer {
  readonly clock = new TestClock()
  readonly recorded = new RecordedLog()
  readonly log = this.recorded.log
  readonly machine: StateMachine
  readonly root: CertificateWithKey
  readonly issuing: CertificateWithKey
  /** Addresses of members that differ from their records. */
  readonly moved = new Map<string, string>()
  readonly members = new Map<string, TestMember>()
  readonly proposals: ProposalInput[] = []
  beforePropose: ((input: ProposalInput) => Promise<void>) | null = null
  /** If true, commands take effect, but their proposer gets no response. */
  losesAnswers = false
  isSettled = true
  #configuration = create(ConfigurationSchema)

  private constructor(
    machine: StateMachine,
    root: CertificateWithKey,
    issuing: CertificateWithKey,
  ) {
    this.machine = machine
    this.root = root
    this.issuing = issuing
  }

  /**
   * @param lacking a member for which no secret is encrypted.
   * @param seeds records in addition to the secrets.
   */
  static async form(
    ids: readonly string[],
    lacking = '',
    seeds: readonly SeedRecord[] = [],
  ): Promise<SecretsCluster> {
    const validity = validityStartingAt(startMs, 30 * 24 * 3_600_000)
    const root = await createRootAuthority({ commonName: 'test root', validity })
    const issuing = await createIssuingAuthority({ commonName: 'test issuing', root, validity })
    const clock = { nowMs: () => startMs, monotonicMs: () => startMs }
    const machine = await StateMachine.open({ store: new MemoryStateStore(), clock })
    const cluster = new SecretsCluster(machine, root, issuing)
    const leaves = new Map<string, CertificateWithKey>()
    for (const id of ids) {
      const options = { issuer: issuing, trustDomain: TRUST_DOMAIN, id, hosts: [id], validity }
      leaves.set(id, await issueControllerCertificate(options))
    }
    cluster.configure(leaves)
    await cluster.#form(leaves, lacking, seeds)
    for (const [id, leaf] of leaves) await cluster.add(id, leaf)
    return cluster
  }

  async #form(
    leaves: ReadonlyMap<string, CertificateWithKey>,
    lacking: string,
    seeds: readonly SeedRecord[],
  ): Promise<void> {
    const admissions = [...leaves].map(([nodeId, { certificatePem }]) => ({
      nodeId,
      publicKeySpki: spkiOf(certificatePem),
      storeId: newOpaqueId(),
      address: `${nodeId}:1480`,
      certificatePem,
    }))
    const records = await createBootstrapRecords({
      clusterId: CLUSTER_ID,
      admissions,
      issuing: this.issuing,
      nowMs: startMs,
    })
    for (const record of records) {
      const text = Buffer.from(record.json).toString()
      const wrapped = new RegExp(`,?"${lacking}":"[^"]+"`)
      if (lacking !== '') record.json = Buffer.from(text.replace(wrapped, ''))
    }
    const form = create(FormSchema, { clusterId: CLUSTER_ID, records: [...seeds, ...records] })
    const payload = toBinary(FormSchema, form)
    this.#command({ kind: CommandKind.FORM, payload, actor: anySystem })
  }

  /** Adds a controller with the key of this leaf certificate. */
  async add(id: string, leaf: CertificateWithKey): Promise<TestMember> {
    const { machine: state, log, clock } = this
    const keyring = new Keyring({
      state,
      selfId: id,
      privateKeyPem: () => leaf.privateKeyPem,
      log,
    })
    await keyring.refresh()
    const desk = new JoinTickets({
      cluster: this.view(id),
      proposer: this,
      state,
      keyring,
      clock,
      log,
      trustDomain: TRUST_DOMAIN,
      caPem: () => this.root.certificatePem,
      addressOf: (one) => this.moved.get(one) ?? null,
      sharedOptions: [{ name: 'oidc.enabled', value: 'true' }],
    })
    const rotation = { proposer: this, state, keyring, log, overlapMs: OVERLAP_MS }
    const member = { id, leaf, keyring, desk, rotation }
    this.members.set(id, member)
    return member
  }

  member(id: string): TestMember {
    const member = this.members.get(id)
    if (member === undefined) throw new Error(`no ${id}`)
    return member
  }

  /** Sets the members in the cluster configuration. */
  configure(leaves: ReadonlyMap<string, { readonly certificatePem: string }>): void {
    this.#configuration = create(ConfigurationSchema, {
      members: [...leaves].map(([id, { certificatePem }]) => ({
        id,
        voter: true,
        address: `${id}:1480`,
        publicKeySha256: parseCertificates(certificatePem)[0].publicKeySha256,
      })),
    })
    this.#append('configuration', toBinary(ConfigurationSchema, this.#configuration))
  }

  /** Removes a member from the configuration; its admission record stays. */
  expel(id: string): void {
    const others = [...this.members.values()].filter((member) => member.id !== id)
    this.configure(new Map(others.map((member) => [member.id, member.leaf])))
  }

  async propose(input: ProposalInput): Promise<AppliedProposal> {
    this.proposals.push(input)
    const { beforePropose } = this
    this.beforePropose = null
    await beforePropose?.(input)
    const applied = this.#command(input)
    if (this.losesAnswers) throw new Problem('OUTCOME_UNKNOWN')
    return applied
  }

  #command({ kind, payload }: ProposalInput): AppliedProposal {
    const { index, outcome } = this.#append('command', commandData(kind, payload))
    if (outcome === null) throw new Error('a command has an outcome')
    return { index, outcome }
  }

  #append(type: 'command' | 'configuration', data: Uint8Array) {
    const index = this.machine.appliedIndex + 1
    return this.machine.apply({ index, term: 1, timeMs: this.clock.ms, type, data })
  }

  view(selfId: string): ClusterView & AdmissionView {
    return {
      selfId,
      clusterId: CLUSTER_ID,
      generation: 1,
      featureLevel: 1,
      members: () =>
        [...this.members.values()]
          .sort((a, b) => (a.id < b.id ? -1 : 1))
          .map(({ id, leaf: { certificatePem } }) => ({ ...memberView(id), certificatePem })),
      leaderId: () => selfId,
      leaderContactMs: () => 0,
      quorumClockMs: () => null,
      readIndex: () => Promise.resolve(this.machine.appliedIndex),
      configuration: () => ({
        record: this.#configuration,
        index: 1,
        isCommitted: this.isSettled,
      }),
    }
  }
}

type AdmissionView = Pick<ConstructorParameters<typeof JoinTickets>[0]['cluster'], 'configuration'>

export function spkiOf(certificatePem: string): Uint8Array {
  const [{ native }] = parseCertificates(certificatePem)
  return Uint8Array.from(native.publicKey.export({ type: 'spki', format: 'der' }))
}

function memberView(id: string): MemberView {
  const url = `https://${id}:1280`
  return {
    id,
    address: `${id}:1480`,
    voter: true,
    leader: false,
    connected: id !== 'ctrl3',
    version: 'v0.1.0',
    apiAddresses: [
      { api: 'edge-client', url: `${url}/edge/client/v1`, version: 'v1' },
      { api: 'fabric', url: `${url}/fabric/v1`, version: 'v1' },
    ],
    routerAddresses: [],
    certificatePem: '',
    featureLevel: 1,
    startedAtMs: 0,
    lastContactMs: 0,
    progress: null,
    readOnly: false,
    vitals: null,
  }
}
