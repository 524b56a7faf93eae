import { create, toBinary } from '@bufbuild/protobuf'

import { ModelChangeSetSchema } from '../../../proto/gen/router_pb.ts'
import { encodeModelEvent } from '../../../src/fabric/model/encode.ts'
import { appendPreviousIndex } from '../../../src/fabric/model/model-change-history.ts'
import { encodeFullModel } from '../../../src/fabric/model/model-handler.ts'
import type { ModelEvent } from '../../../src/ports/router-model.ts'
import { modelLimits } from '../../../src/router/model/limits.ts'
import { RouterDataModel } from '../../../src/router/model/router-data-model.ts'

export const timelineId = 'timeline-1'

/** The message in which our controllers send the full model. */
export function wholeBody(
  events: Iterable<ModelEvent>,
  endIndex: number,
  timeline = timelineId,
): Promise<Uint8Array> {
  return encodeFullModel({ events, keys: [], endIndex, timelineId: timeline, nowMs: 0 })
}

/** The message in which our controllers send the changes of an entry. */
export function changesBody(
  events: readonly ModelEvent[],
  index: number,
  previousIndex: number,
  options: { readonly isSynthetic?: boolean; readonly timeline?: string } = {},
): Uint8Array {
  const { isSynthetic = false, timeline = timelineId } = options
  const changes = events.flatMap((event) => encodeModelEvent(event, 0) ?? [])
  const set = create(ModelChangeSetSchema, {
    index: BigInt(index),
    changes,
    timelineId: timeline,
    isSynthetic,
  })
  return appendPreviousIndex(toBinary(ModelChangeSetSchema, set), previousIndex)
}

/** Runs a generator to its end. @returns its result. */
export function finished<T>(steps: Generator<void, T>): T {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

export async function modelOf(
  events: Iterable<ModelEvent>,
  endIndex = 1,
  limits: Partial<Record<keyof typeof modelLimits, number>> = {},
): Promise<RouterDataModel> {
  const model = new RouterDataModel({ ...modelLimits, ...limits })
  finished(model.replace(await wholeBody(events, endIndex)))
  return model
}
