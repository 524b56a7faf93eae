import { createHash } from 'node:crypto'
import { create, toBinary } from '@bufbuild/protobuf'
import {
  AdmissionDeleteSchema,
  CommandKind,
  SecretRotateSchema,
  SecretShareSchema,
  TicketCreateSchema,
  TicketRedeemSchema,
  TicketRevokeSchema,
} from '../../../proto/gen/command_pb.ts'
import { ConfigurationSchema } from '../../../proto/gen/membership_pb.ts'
import type { JoinAdmission } from '../../../src/entities/kinds/admission.ts'
import type { SecretVersion } from '../../../src/lib/shared-secrets.ts'
import type { Outcome } from '../../../src/ports/proposer.ts'
import { formedState, type LogWriter } from './log.ts'
import type { ClusterState } from '../../../src/fsm/access/cluster-state.ts'

export const jweOf = (text: string): string =>
  ['h', 'k', 'n', text, 't'].map((part) => Buffer.from(part).toString('base64url')).join('.')

const bytes = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text))
const digestOf = (text: string): Uint8Array =>
  Uint8Array.from(createHash('sha256').update(text).digest())

export interface Joiner {
  readonly nodeId: string
  readonly key: string
  readonly store: string
  readonly certificatePem?: string
  readonly address?: string
  readonly digest?: string
  /** Pairs of name and version; absent: all current versions. */
  readonly secrets?: readonly (readonly [string, number])[]
}

/** A new cluster, with the commands by which controllers join and are removed. */
export class Joining {
  readonly state: ClusterState
  readonly log: LogWriter

  constructor() {
    const { state, log } = formedState()
    this.state = state
    this.log = log
    this.members([])
  }

  #propose(kind: number, payload: Uint8Array): Outcome {
    const { outcome } = this.log.command(kind, payload)
    if (outcome === null) throw new Error('the command was passed over')
    return outcome
  }

  members(members: readonly { readonly id: string; readonly key: string }[]): void {
    const configuration = create(ConfigurationSchema, {
      members: members.map(({ id, key }) => ({ id, voter: true, publicKeySha256: digestOf(key) })),
    })
    this.log.append('configuration', toBinary(ConfigurationSchema, configuration))
  }

  invite(id: string, lifetimeMs = 60_000, voter = true): Outcome {
    const expiresAtMs = BigInt(this.log.timeMs + lifetimeMs)
    const message = create(TicketCreateSchema, { id, digest: digestOf(id), voter, expiresAtMs })
    return this.#propose(CommandKind.TICKET_CREATE, toBinary(TicketCreateSchema, message))
  }

  revoke(id: string): Outcome {
    const payload = toBinary(TicketRevokeSchema, create(TicketRevokeSchema, { id }))
    return this.#propose(CommandKind.TICKET_REVOKE, payload)
  }

  redeemPayload(ticketId: string, joiner: Joiner): Uint8Array {
    const { nodeId } = joiner
    const secrets = joiner.secrets ?? this.inForce()
    const message = create(TicketRedeemSchema, {
      ticketId,
      ticketDigest: digestOf(joiner.digest ?? ticketId),
      nodeId,
      storeId: bytes(joiner.store.padEnd(16, '.')),
      publicKeySpki: bytes(joiner.key),
      address: joiner.address ?? 'host:1480',
      certificatePem: joiner.certificatePem ?? `certificate of ${nodeId}`,
      secrets: secrets.map(([name, version]) => ({
        name,
        version,
        nodeId,
        jwe: jweOf(`${name} ${version} ${nodeId}`),
      })),
    })
    return toBinary(TicketRedeemSchema, message)
  }

  redeem(ticketId: string, joiner: Joiner): Outcome {
    return this.#propose(CommandKind.TICKET_REDEEM, this.redeemPayload(ticketId, joiner))
  }

  /** Invites and admits a controller. */
  join(nodeId: string): void {
    this.invite(`ticket-of-${nodeId}`)
    const outcome = this.redeem(`ticket-of-${nodeId}`, {
      nodeId,
      key: `key-${nodeId}`,
      store: nodeId,
    })
    if (!outcome.ok) throw new Error(JSON.stringify(outcome))
  }

  remove(nodeId: string, flags: { compromised?: boolean } = {}): Outcome {
    const message = create(AdmissionDeleteSchema, {
      nodeId,
      publicKeySpki: bytes(`key-${nodeId}`),
      ...flags,
    })
    return this.#propose(CommandKind.ADMISSION_DELETE, toBinary(AdmissionDeleteSchema, message))
  }

  rotate(
    name: string,
    version: number,
    nodeIds: readonly string[],
    overlapMs = 60_000,
    certificatePem = name === 'clusterKey' ? '' : 'certificate',
  ): Outcome {
    const message = create(SecretRotateSchema, {
      name,
      version,
      certificatePem,
      overlapEndsAtMs: BigInt(this.log.timeMs + overlapMs),
      wrapped: nodeIds.map((nodeId) => ({
        name,
        version,
        nodeId,
        jwe: jweOf(`${name} ${version} ${nodeId}`),
      })),
    })
    return this.#propose(CommandKind.SECRET_ROTATE, toBinary(SecretRotateSchema, message))
  }

  share(name: string, version: number, nodeId: string, text = 'shared'): Outcome {
    const message = create(SecretShareSchema, {
      wrapped: [{ name, version, nodeId, jwe: jweOf(text) }],
    })
    return this.#propose(CommandKind.SECRET_SHARE, toBinary(SecretShareSchema, message))
  }

  versions(name: string): readonly SecretVersion[] {
    return this.state.get('sharedSecret', name)?.versions ?? []
  }

  inForce(): (readonly [string, number])[] {
    return ['clusterKey', 'issuingAuthority'].flatMap((name) =>
      this.versions(name).map(({ version }) => [name, version] as const),
    )
  }

  admission(id: string): JoinAdmission | undefined {
    return this.state.get('admission', id)
  }
}
