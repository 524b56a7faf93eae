import { create, toBinary } from '@bufbuild/protobuf'

import { DataStateSchema, ModelEventSchema } from '../../../proto/gen/router_pb.ts'
import type { ModelEvent } from '../../ports/router-model.ts'
import { encodedEvent } from './encode.ts'
import type { PublicKeyValue } from './public-keys.ts'

/** Events encoded before other work gets its turn. */
const SLICE_EVENTS = 500

export interface WholeModel {
  readonly events: Iterable<ModelEvent>
  readonly keys: readonly PublicKeyValue[]
  readonly endIndex: number
  readonly timelineId: string
  /** UTC ms. */
  readonly nowMs: number
}

/**
 * Encodes the message with the full model in slices, because repeated fields of a message may be
 * concatenated.
 */
export async function encodeWholeModel(model: WholeModel): Promise<Uint8Array> {
  const { keys, endIndex, timelineId, nowMs } = model
  // Records do not change, but the set of records may change before the next slice.
  const events = [...model.events]
  const parts: Uint8Array[] = []
  for (let at = 0; at < events.length; at += SLICE_EVENTS) {
    const slice = events.slice(at, at + SLICE_EVENTS).flatMap((event) => {
      const encoded = encodedEvent(event, nowMs)
      return encoded === null ? [] : [encoded]
    })
    parts.push(toBinary(DataStateSchema, create(DataStateSchema, { events: slice })))
    await new Promise((resolve) => setImmediate(resolve))
  }
  const last = create(DataStateSchema, {
    events: keys.map((value) => create(ModelEventSchema, { model: { case: 'publicKey', value } })),
    endIndex: BigInt(endIndex),
    timelineId,
  })
  parts.push(toBinary(DataStateSchema, last))
  return Buffer.concat(parts)
}
