import { createHash } from 'node:crypto'

import { create } from '@bufbuild/protobuf'

import type { RecordOf } from '../../ports/state-view.ts'
import {
  type Configuration as ConfigurationRecord,
  RemovedKeySchema,
} from '../../../proto/gen/membership_pb.ts'
import type { ConfigurationInForce } from '../cluster-node-parts.ts'
import { membershipLimits } from './limits.ts'

/** A controller by its id and the key that it is pinned by. */
export interface KeyOfMember {
  readonly id: string
  readonly publicKeySha256: Uint8Array
}

/** The pins are public values; no constant time is needed. */
export function isOfKey(
  pinned: { readonly publicKeySha256: Uint8Array },
  publicKeySha256: Uint8Array,
): boolean {
  return publicKeySha256.length > 0 && sameBytes(pinned.publicKeySha256, publicKeySha256)
}

export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0
}

export function keySha256Of(admission: RecordOf<'admission'>): Uint8Array {
  return createHash('sha256').update(Buffer.from(admission.publicKeySpki, 'base64')).digest()
}

export function isJointRecord(record: ConfigurationRecord): boolean {
  return record.outgoingVoters.length > 0
}

/** Routers refuse the key from then on; the oldest removals are forgotten. */
export function noteRemovedKey(target: ConfigurationRecord, key: KeyOfMember): void {
  forgetRemovedKey(target, key)
  const { id, publicKeySha256 } = key
  target.removed.push(create(RemovedKeySchema, { id, publicKeySha256 }))
  target.removed = target.removed.slice(-membershipLimits.removedKeysMax)
}

/** The same key comes in again. */
export function forgetRemovedKey(target: ConfigurationRecord, key: KeyOfMember): void {
  target.removed = target.removed.filter(
    (known) => known.id !== key.id || !isOfKey(known, key.publicKeySha256),
  )
}

/** Nothing is under way: the next change may begin. */
export function isAtRest({ record, isCommitted }: ConfigurationInForce): boolean {
  return isCommitted && !isJointRecord(record)
}
