import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import { InspectAnswerSchema, InspectRequestSchema } from '../../proto/gen/router_pb.ts'
import { jsonDepth } from '../lib/bounds/json-depth.ts'
import { errorMessage } from '../lib/error-code.ts'
import type { RouterInspection, RouterInspections } from '../ports/router-inspections.ts'
import { routerLimits } from './limits.ts'
import { controlContentType } from '../channel/messages/control.ts'
import type { RouterChannels } from './router-channels.ts'

const JSON_DEPTH_MAX = 64

/** Inspects routers over their channels to this controller. */
export function createRouterInspections(
  channels: Pick<RouterChannels, 'connection'>,
): Pick<RouterInspections, 'inspect'> {
  return {
    inspect: async (routerId, names) => {
      const channel = channels.connection(routerId)?.channel
      if (channel === undefined) return failed(routerId, 'is not connected')
      const request = create(InspectRequestSchema, { requestedValues: [...names] })
      try {
        const { contentType, body } = await channel.request(
          {
            contentType: controlContentType.inspect,
            body: toBinary(InspectRequestSchema, request),
          },
          routerLimits.routerInspectionTimeoutMs,
        )
        if (contentType !== controlContentType.inspectResponse)
          return failed(routerId, 'gave no values')
        const { values, errors } = fromBinary(InspectAnswerSchema, body)
        return {
          values: values.map(({ name, value }) => ({ name, value: jsonOf(value) })),
          errors: errors.filter(isFault).map((error) => `${routerId}: ${error}`),
        }
      } catch (error) {
        return failed(routerId, errorMessage(error))
      }
    },
  }
}

/**
 * Whether the error is a fault of the router. Routers of earlier releases report an unknown name as
 * an error, which is not a fault.
 */
function isFault(error: string): boolean {
  return !error.endsWith(': not known to this router')
}

function failed(routerId: string, what: string): RouterInspection {
  return { values: [], errors: [`${routerId}: ${what}`] }
}

/**
 * Parses JSON; returns the string unchanged if it is not JSON, or is nested too deeply to be
 * serialized again.
 */
function jsonOf(text: string): unknown {
  // @guard inspection-of-a-router--depth
  if (jsonDepth(text) > JSON_DEPTH_MAX) return text
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}
