import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'

import { newOpaqueId } from '../../lib/random.ts'
import { generatePrivateKeyPem } from '../../pki/authority/certificate-request.ts'
import type { Ticket } from '../../pki/secrets/ticket.ts'
import { readSecretFile, syncFolder, writeSecretFile } from '../../pki/secret-file.ts'
import { makeFolder } from '../terminal/make-folder.ts'
import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'

/**
 * State by which a repeated attempt counts as the same join: the cluster accepts a used ticket only
 * with the same key and store ID. It is written next to CONFIG with mode 0600 before the first
 * request, and removed when the join is complete. The run that created it also removes it if the
 * cluster refused the request, or if the request was never sent.
 */
export interface JoinState {
  readonly id: string
  readonly clusterId: string
  /** Id of the data folder that the join will create, 16 bytes. */
  readonly storeId: Uint8Array
  readonly privateKeyPem: string
  /** True if the operator supplied key and certificate, which the join does not change. */
  readonly keepsCertificate: boolean
  /** True if this run created the state, so that no earlier run has sent a request with it. */
  readonly isNew: boolean
}

export const JOIN_STATE_FILE_NAME = '.joining'
const FORMAT = 1

/**
 * @returns null when no join is in progress in this folder.
 * @throws {CommandFailure} exit 1 when the file is damaged.
 */
export function readJoinState(folder: string): JoinState | null {
  const path = join(folder, JOIN_STATE_FILE_NAME)
  if (!existsSync(path)) return null
  const state = parsed(readSecretFile(path).text)
  if (state !== null) return state
  throw new CommandFailure(EXIT_FAILED, `${path} is damaged; remove it and join with a new ticket`)
}

/** @param privateKeyPem the operator's key; null: a key is generated. */
export function createJoinState(
  folder: string,
  id: string,
  ticket: Ticket,
  privateKeyPem: string | null,
): JoinState {
  makeFolder(folder, 0o700)
  const state: JoinState = {
    id,
    clusterId: ticket.clusterId,
    storeId: newOpaqueId(),
    privateKeyPem: privateKeyPem ?? generatePrivateKeyPem(),
    keepsCertificate: privateKeyPem !== null,
    isNew: true,
  }
  const storeId = Buffer.from(state.storeId).toString('hex')
  const { clusterId, keepsCertificate } = state
  const key = { privateKeyPem: state.privateKeyPem, keepsCertificate }
  const content = { format: FORMAT, id, clusterId, storeId, ...key }
  writeSecretFile(join(folder, JOIN_STATE_FILE_NAME), `${JSON.stringify(content)}\n`)
  return state
}

export function deleteJoinState(folder: string): void {
  rmSync(join(folder, JOIN_STATE_FILE_NAME), { force: true })
  syncFolder(folder)
}

function parsed(text: string): JoinState | null {
  let found: Readonly<Record<string, unknown>>
  try {
    found = JSON.parse(text) as Readonly<Record<string, unknown>>
  } catch {
    return null
  }
  const { format, id, clusterId, storeId, privateKeyPem } = found
  if (format !== FORMAT || typeof id !== 'string' || typeof clusterId !== 'string') return null
  if (typeof storeId !== 'string' || !/^[0-9a-f]{32}$/.test(storeId)) return null
  if (typeof privateKeyPem !== 'string') return null
  const bytes = Uint8Array.from(Buffer.from(storeId, 'hex'))
  const keepsCertificate = found['keepsCertificate'] === true
  return { id, clusterId, storeId: bytes, privateKeyPem, keepsCertificate, isNew: false }
}
