import { createHash } from 'node:crypto'

import { create } from '@bufbuild/protobuf'

import type { RecordOf } from '../../ports/state-view.ts'
import {
  type Configuration as ConfigurationRecord,
  RemovedKeySchema,
} from '../../../proto/gen/membership_pb.ts'
import type { CurrentConfiguration } from '../cluster-node-deps.ts'
import { membershipLimits } from './limits.ts'

/** A controller's id and pinned key. */
interface KeyOfMember {
  readonly id: string
  readonly publicKeySha256: Uint8Array
}

/** The comparison need not take constant time, because the keys are public. */
export function isSameMemberKey(
  pinned: { readonly publicKeySha256: Uint8Array },
  publicKeySha256: Uint8Array,
): boolean {
  return publicKeySha256.length > 0 && isSameBytes(pinned.publicKeySha256, publicKeySha256)
}

export function isSameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0
}

export function admissionKeySha256(admission: RecordOf<'admission'>): Uint8Array {
  return createHash('sha256').update(Buffer.from(admission.publicKeySpki, 'base64')).digest()
}

export function isJointConfigurationRecord(record: ConfigurationRecord): boolean {
  return record.outgoingVoters.length > 0
}

/** Adds a key that routers must refuse. Above the limit, drops the oldest keys. */
export function addRemovedKey(target: ConfigurationRecord, key: KeyOfMember): void {
  deleteRemovedKey(target, key)
  const { id, publicKeySha256 } = key
  target.removed.push(create(RemovedKeySchema, { id, publicKeySha256 }))
  target.removed = target.removed.slice(-membershipLimits.removedKeysMax)
}

/**
 * Removes the key from the keys that routers refuse; called when the same key is admitted again.
 */
export function deleteRemovedKey(target: ConfigurationRecord, key: KeyOfMember): void {
  target.removed = target.removed.filter(
    (known) => known.id !== key.id || !isSameMemberKey(known, key.publicKeySha256),
  )
}

/** Whether no change is in progress, so that another one may start. */
export function isMembershipChangeFinished({ record, isCommitted }: CurrentConfiguration): boolean {
  return isCommitted && !isJointConfigurationRecord(record)
}
