import { TerminatorFault } from '../../../proto/gen/router_pb.ts'
import type { ControlMessageTable } from './control-connection.ts'
import { controlContentType } from '../../channel/messages/control.ts'
import { readTerminatorQuery, terminatorStatesMessage } from '../../channel/messages/terminators.ts'

/**
 * Creates a handler that immediately answers validation requests for the terminators whose binding
 * `isOwn` accepts.
 */
export function createTerminatorValidator(
  isOwn: (binding: string) => boolean,
  faultOf: (terminator: {
    readonly id: string
    readonly binding: string
  }) => TerminatorFault | null,
): ControlMessageTable {
  return new Map([
    [
      controlContentType.validateTerminatorsV2,
      ({ channel }, { body }) => {
        const own = readTerminatorQuery(body).terminators.filter(({ binding }) => isOwn(binding))
        if (own.length === 0) return
        const states = own.map((terminator) => {
          const fault = faultOf(terminator)
          const reason = fault ?? TerminatorFault.UNKNOWN_BINDING
          return [terminator.id, { valid: fault === null, reason, marker: terminator.marker }]
        })
        channel.send(terminatorStatesMessage(Object.fromEntries(states)))
      },
    ],
  ])
}
