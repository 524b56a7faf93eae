import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'

import { create, toBinary } from '@bufbuild/protobuf'

import { ConfigurationSchema, type Member, MemberSchema } from '../../proto/gen/membership_pb.ts'
import type { ConsensusOptions } from '../../src/cluster/consensus-options.ts'
import { newOpaqueId } from '../../src/lib/random.ts'
import {
  createIssuingAuthority,
  createRootAuthority,
  issueControllerCertificate,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import { createDataFolder } from '../../src/store/folder/create-data-folder.ts'
import type { MemberAnswer, MemberCommand } from './raft-member.ts'
import { freePort } from '../../test/support/ports.ts'

const TRUST_DOMAIN = 'bench.flotilla'
const CLUSTER_ID = 'bench'

export type Loaded = Extract<MemberAnswer, { type: 'loaded' }>

/**
 * Three Raft engines without a controller's state machine, in separate processes: with their
 * threads, mutual TLS, and logs on disk with one sync for each batch.
 */
export class RaftCluster {
  readonly #folder: string
  readonly #children = new Map<string, ChildProcess>()
  #leader: ChildProcess | null = null
  #onAnswer: (answer: MemberAnswer, from: ChildProcess) => void = () => undefined

  private constructor(folder: string) {
    this.#folder = folder
  }

  /** @param parent folder on the disk to measure; files created in it are removed again. */
  static async start(parent: string, size: number): Promise<RaftCluster> {
    const cluster = new RaftCluster(mkdtempSync(join(parent, 'flotilla-raft-')))
    try {
      const hosts = await planHosts(size)
      for (const host of hosts) cluster.#form(host)
      const leads = cluster.#answerOf('leads')
      for (const host of hosts) cluster.#spawn(host)
      await leads
      return cluster
    } catch (error) {
      await cluster.stop()
      throw error
    }
  }

  /** Runs proposers in the leader's process, each with one write at a time. */
  async load(proposers: number, seconds: number, payloadBytes: number): Promise<Loaded> {
    const loaded = this.#answerOf('loaded')
    tell(this.#leader, { type: 'load', proposers, seconds, payloadBytes })
    return (await loaded) as Loaded
  }

  async stop(): Promise<void> {
    const ends = [...this.#children.values()].map(async (child) => {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = new Promise((resolve) => child.once('exit', resolve))
      tell(child, { type: 'stop' })
      const timer = setTimeout(() => child.kill('SIGKILL'), 10_000)
      await ended
      clearTimeout(timer)
    })
    await Promise.all(ends)
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #answerOf(type: MemberAnswer['type']): Promise<MemberAnswer> {
    return await new Promise((resolve, reject) => {
      this.#onAnswer = (answer, from) => {
        if (answer.type === 'leads') this.#leader = from
        if (answer.type === type) resolve(answer)
        else if (answer.type === 'failed') reject(new Error(answer.reason))
      }
    })
  }

  #form({ selfId, storeId, configuration }: ConsensusOptions): void {
    createDataFolder(join(this.#folder, selfId), {
      nodeId: selfId,
      storeId,
      clusterId: CLUSTER_ID,
      generation: 1,
      entries: [{ index: 1, term: 1, timeMs: 1, type: 'configuration', data: configuration }],
    })
  }

  #spawn(host: ConsensusOptions): void {
    const child = fork(join(import.meta.dirname, 'raft-member.ts'), {
      serialization: 'advanced',
      execArgv: ['--disable-warning=DEP0123'],
    })
    this.#children.set(host.selfId, child)
    child.on('message', (answer: MemberAnswer) => this.#onAnswer(answer, child))
    tell(child, { type: 'start', dir: join(this.#folder, host.selfId), host })
  }
}

function tell(child: ChildProcess | null, command: MemberCommand): void {
  child?.send(command)
}

async function planHosts(size: number): Promise<ConsensusOptions[]> {
  const validity = validityStartingAt(Date.now(), 24 * 60 * 60 * 1000)
  const root = await createRootAuthority({ commonName: 'bench root', validity })
  const issuer = await createIssuingAuthority({ commonName: 'bench issuing', root, validity })
  const hosts: Omit<ConsensusOptions, 'configuration'>[] = []
  const members: Member[] = []
  for (let i = 1; i <= size; i += 1) {
    const id = `n${i}`
    const leaf = await issueControllerCertificate({
      issuer,
      trustDomain: TRUST_DOMAIN,
      id,
      hosts: ['127.0.0.1'],
      validity,
    })
    const address = `127.0.0.1:${await freePort()}`
    const storeId = newOpaqueId()
    const { publicKeySha256 } = parseCertificates(leaf.certificatePem)[0]
    members.push(create(MemberSchema, { id, voter: true, address, storeId, publicKeySha256 }))
    hosts.push({
      selfId: id,
      clusterId: CLUSTER_ID,
      generation: 1,
      storeId,
      trustDomain: TRUST_DOMAIN,
      identity: { ...leaf, caPem: root.certificatePem },
      bind: address,
      advertise: address,
      addressHints: [],
      version: 'bench',
      startedAtMs: Date.now(),
      apiAddresses: [],
      applied: { term: 0, index: 0 },
      appliedTimeMs: 0,
    })
  }
  const configuration = toBinary(ConfigurationSchema, create(ConfigurationSchema, { members }))
  return hosts.map((host) => ({ ...host, configuration }))
}
