import type { Configuration } from '../../../proto/gen/membership_pb.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import type { DataIdentity } from '../../store/log/data-identity.ts'
import { CommandFailure, EXIT_FAILED } from '../command-failure.ts'
import type { Credentials } from './check-certificates.ts'

const POLL_MS = 200

export interface MemberKeyDeps {
  readonly config: ControllerConfig
  readonly credentials: Credentials
  readonly identity: DataIdentity
  /** Returns the configuration that is on disk. */
  readonly configuration: () => Configuration
}

/**
 * Checks that this controller's key matches its member record; otherwise every peer would refuse
 * it.
 * @returns whether the member record was available; in a new folder, only the log contains it.
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
  // There is nothing to compare: this member record is about another store. The record for this
  // store may still be in the log; if it is not, the peers refuse the store.
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
 * Repeats the check for a new data folder until the member record is available, which is only after
 * the first entries are applied and persisted.
 * @returns a function that stops the repeated check.
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
