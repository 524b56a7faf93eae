import type { Configuration } from '../../../proto/gen/membership_pb.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import type { DataIdentity } from '../../store/log/identity.ts'
import { CommandFailure, EXIT_FAILED } from '../failure.ts'
import type { Credentials } from './check-certificates.ts'

const POLL_MS = 200

export interface MemberKeyParts {
  readonly config: ControllerConfig
  readonly credentials: Credentials
  readonly identity: DataIdentity
  /** Configuration as it is persisted. */
  readonly configuration: () => Configuration
}

/**
 * A folder whose members know another key by this name would be refused by every peer.
 * @returns whether the member record was there to compare with; a folder that has never run has it
 * in its log alone.
 * @throws {CommandFailure}
 */
export function checkMemberKey({
  config,
  credentials,
  identity,
  configuration,
}: MemberKeyParts): boolean {
  const member = configuration().members.find(({ id }) => id === config.id)
  if (member === undefined) return false
  // A disk that is new here is listed once the log has come that far; a stranger's is for the peers
  // to refuse.
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
 * For a folder on its first run: its member record is known once the log's beginning is applied and
 * persisted.
 * @returns ends it.
 */
export function watchMemberKey(parts: MemberKeyParts, onFatal: (error: Error) => void): () => void {
  const timer = setInterval(() => {
    try {
      if (checkMemberKey(parts)) clearInterval(timer)
    } catch (error) {
      clearInterval(timer)
      onFatal(error instanceof Error ? error : new Error(String(error)))
    }
  }, POLL_MS)
  return () => {
    clearInterval(timer)
  }
}
