import type { Configuration } from '../../../proto/gen/membership_pb.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import type { DataIdentity } from '../../store/log/identity.ts'
import { CommandFailure, EXIT_FAILED } from '../failure.ts'
import type { Credentials } from './check-certificates.ts'

const POLL_MS = 200

export interface MemberKeyDeps {
  readonly config: ControllerConfig
  readonly credentials: Credentials
  readonly identity: DataIdentity
  /** The persisted configuration. */
  readonly configuration: () => Configuration
}

/**
 * Checks that the key matches the member record; otherwise every peer would refuse this controller.
 * @returns whether the member record was available; a new folder has it only in its log.
 * @throws {CommandFailure}
 */
export function checkMemberKey({
  config,
  credentials,
  identity,
  configuration,
}: MemberKeyDeps): boolean {
  const member = configuration().members.find(({ id }) => id === config.id)
  if (member === undefined) return false
  // The record is about another store. The record of this store may still be in the log; if it is
  // not, the peers refuse the store.
  if (Buffer.compare(member.storeId, identity.storeId) !== 0) return false
  if (Buffer.compare(member.publicKeySha256, credentials.chain[0].publicKeySha256) !== 0) {
    throw new CommandFailure(
      EXIT_FAILED,
      `${config.identity.cert} has another key than the member record of ${config.id} in ${config.data}; name the certificate of that cluster, or the data folder of this one`,
    )
  }
  return true
}

/**
 * For the first run of a data folder: its member record is available only after the first entries
 * are applied and persisted.
 * @returns a function that stops the check.
 */
export function watchMemberKey(deps: MemberKeyDeps, onFatal: (error: Error) => void): () => void {
  const timer = setInterval(() => {
    try {
      if (checkMemberKey(deps)) clearInterval(timer)
    } catch (error) {
      clearInterval(timer)
      onFatal(error instanceof Error ? error : new Error(String(error)))
    }
  }, POLL_MS)
  return () => {
    clearInterval(timer)
  }
}
