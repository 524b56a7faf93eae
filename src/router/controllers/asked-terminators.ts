import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'

import {
  TerminatorFault,
  TerminatorStatesSchema,
  ValidateTerminatorsSchema,
} from '../../../proto/gen/router_pb.ts'
import type { Outgoing } from '../../channel/frame.ts'
import type { ControlMessageTable } from './control-connection.ts'

/** A controller asks which terminators are here still; each subject answers for its binding. */
export const terminatorQuestion = { asked: 1041, answered: 1042 } as const

/** @throws when the bytes are no such message. */
export function readTerminatorQuestion(body: Uint8Array) {
  return fromBinary(ValidateTerminatorsSchema, body)
}

export function terminatorStatesMessage(
  states: Exclude<MessageInitShape<typeof TerminatorStatesSchema>['states'], undefined>,
): Outgoing {
  return {
    contentType: terminatorQuestion.answered,
    body: toBinary(TerminatorStatesSchema, create(TerminatorStatesSchema, { states })),
  }
}

/** Answers at once for the terminators of some bindings. */
export function answersForTerminators(
  isOwn: (binding: string) => boolean,
  faultOf: (terminator: {
    readonly id: string
    readonly binding: string
  }) => TerminatorFault | null,
): ControlMessageTable {
  return new Map([
    [
      terminatorQuestion.asked,
      ({ channel }, { body }) => {
        const own = readTerminatorQuestion(body).terminators.filter(({ binding }) => isOwn(binding))
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
