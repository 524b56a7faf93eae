import { generateKeyPairSync } from 'node:crypto'
import { create, toBinary } from '@bufbuild/protobuf'

import {
  CommandKind,
  EntityDeleteSchema,
  type SeedRecord,
  SeedRecordSchema,
  SessionCreateSchema,
} from '../../proto/gen/command_pb.ts'
import type { BackupSecret } from '../../src/backup/content.ts'
import { BackupFault } from '../../src/backup/backup-fault.ts'
import { parseRecipient } from '../../src/backup/encryption.ts'
import { BackupWriter } from '../../src/backup/write-backup.ts'
import {
  type BackupDeps,
  type StartBackupOptions,
  streamBackupBytes,
  startBackup,
} from '../../src/controller/backups/start-backup.ts'
import { normalizeBody } from '../../src/entities/normalize-body.ts'
import { findEntity } from '../../src/entities/registry.ts'
import { initialSeedRecords } from '../../src/fsm/seed/seed.ts'
import { canonicalJson, type JsonObject } from '../../src/lib/text/canonical-json.ts'
import type { ProblemCode } from '../../src/lib/problems.ts'
import { SecretsCluster, TRUST_DOMAIN } from '../cluster/secrets-fixture.ts'
import { LogWriter } from '../fsm/support/log.ts'
import { anySystem } from '../support/commands.ts'

/** A recipient with its private key in the formats of openssl. */
export function newKeyPair(type: 'ec' | 'rsa' = 'ec'): { publicPem: string; privatePem: string } {
  const { publicKey, privateKey } =
    type === 'ec'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : generateKeyPairSync('rsa', { modulusLength: 2048 })
  return {
    publicPem: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    privatePem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

function networkSeeds(): SeedRecord[] {
  const admin = { adminId: 'admin', adminAuthenticatorId: 'admin-updb', adminName: 'admin' }
  return initialSeedRecords({ ...admin, passwordHash: '$argon2id$test' })
}

/** A second factor of the administrator, encrypted with the first version of the factor key. */
export function factorSeed(): SeedRecord {
  const fields = { identityId: 'admin', isVerified: true, keyVersion: 1, sealed: 'sealed' }
  const json = new TextEncoder().encode(canonicalJson(fields))
  return create(SeedRecordSchema, { entity: 'mfa', id: 'admin', json })
}

/** Two controllers with records of each kind that a restore handles specially. */
export class BackedUp {
  readonly cluster: SecretsCluster
  readonly parts: BackupDeps
  refused: ProblemCode | null = null

  private constructor(cluster: SecretsCluster) {
    this.cluster = cluster
    this.parts = {
      cluster: cluster.view('ctrl1'),
      machine: cluster.machine,
      secrets: cluster.member('ctrl1').keyring,
      clock: cluster.clock,
      trustDomain: TRUST_DOMAIN,
      version: 'v0.1.0',
      caPem: () => cluster.root.certificatePem,
      refusal: () => this.refused,
    }
  }

  /** @param seeds records in addition to those of every network. */
  static async make(services = 3, seeds: readonly SeedRecord[] = []): Promise<BackedUp> {
    const all = [...networkSeeds(), ...seeds]
    const made = new BackedUp(await SecretsCluster.form(['ctrl1', 'ctrl2'], '', all))
    await made.put('identity', 'alice', { name: 'Alice', type: 'User', isAdmin: false })
    for (let n = 0; n < services; n += 1) {
      const tags = { filling: `${n} `.repeat(200) }
      await made.put('service', `s${n}`, { name: `s${n}`, encryptionRequired: true, tags })
    }
    await made.logIn('a-session', 'alice')
    return made
  }

  async put(entity: string, id: string, body: JsonObject): Promise<void> {
    const { fields } = normalizeBody(findEntity(entity), 'create', body)
    const payload = LogWriter.write(entity, id, fields)
    await this.#propose(CommandKind.ENTITY_CREATE, payload)
  }

  async patch(entity: string, id: string, body: JsonObject): Promise<void> {
    const { fields } = normalizeBody(findEntity(entity), 'patch', body)
    await this.#propose(CommandKind.ENTITY_PATCH, LogWriter.write(entity, id, fields))
  }

  /** Writes fields that only the controllers set, such as those of a certificate. */
  async set(entity: string, id: string, fields: JsonObject, isNew = false): Promise<void> {
    const kind = isNew ? CommandKind.ENTITY_CREATE : CommandKind.ENTITY_PATCH
    await this.#propose(kind, LogWriter.write(entity, id, fields))
  }

  async remove(entity: string, id: string): Promise<void> {
    const message = create(EntityDeleteSchema, { entity, id })
    await this.#propose(CommandKind.ENTITY_DELETE, toBinary(EntityDeleteSchema, message))
  }

  async logIn(id: string, identityId: string): Promise<void> {
    const message = create(SessionCreateSchema, { id, identityId, ipAddress: '127.0.0.1' })
    await this.#propose(CommandKind.SESSION_CREATE, toBinary(SessionCreateSchema, message))
  }

  async #propose(kind: CommandKind, payload: Uint8Array): Promise<void> {
    const { outcome } = await this.cluster.propose({ kind, payload, actor: anySystem })
    if (!outcome.ok) throw new Error(`refused: ${JSON.stringify(outcome)}`)
  }

  /** Saves a backup. @returns the bytes of the file. */
  async save(
    options: Partial<StartBackupOptions> & { readonly publicPem?: string } = {},
  ): Promise<Buffer> {
    const { publicPem, ...rest } = options
    const recipient = publicPem === undefined ? null : parseRecipient(publicPem)
    const taken = await startBackup(this.parts, {
      recipient,
      hasSecrets: true,
      isLinearizable: true,
      ...rest,
    })
    return await gathered(streamBackupBytes(this.parts, taken))
  }

  /** Saves a backup with a part of the secrets, like a controller that lacks the others. */
  async saveSecrets(isKept: (secret: BackupSecret) => boolean): Promise<Buffer> {
    const { cluster, machine, secrets, trustDomain, version, caPem, clock } = this.parts
    const { clusterId, generation, selfId: controllerId } = cluster
    const origin = { clusterId, generation, controllerId, trustDomain, version, members: ['ctrl1'] }
    const writer = await BackupWriter.begin({
      origin: { ...origin, caPem: caPem(), takenAtMs: clock.nowMs() },
      snapshot: await machine.snapshot(),
      secrets: secrets.held().filter(isKept),
      recipient: null,
    })
    return await gathered(writer.chunks())
  }
}

async function gathered(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  for await (const piece of bytes) pieces.push(piece)
  return Buffer.concat(pieces)
}

/** Splits bytes into chunks of an odd size, as reads of a disk or socket do. */
export async function* pieces(bytes: Uint8Array, size = 1021): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

/** The error code of the fault, or 'none'. @throws other errors. */
export async function faultOf(reading: Promise<unknown>): Promise<string> {
  try {
    await reading
    return 'none'
  } catch (error) {
    if (error instanceof BackupFault) return error.code
    throw error
  }
}
