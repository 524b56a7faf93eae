import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  LinkStanding,
  TerminatorStanding,
  ValidateAllTerminatorsSchema,
  ValidatedHostSchema,
  ValidatedRouterCircuitsSchema,
  ValidatedRouterLinksSchema,
  ValidatedTerminatorDetailSchema,
  ValidateRoutersSchema,
  ValidationStartSchema,
} from '../../../proto/gen/management_pb.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import { notBuiltYet } from '../../lib/not-built-yet.ts'
import { Problem } from '../../lib/problems.ts'
import type {
  NetworkValidations,
  RouterCircuitFindings,
  RouterLinkFindings,
  ValidatedTerminator,
  Validation,
  ValidationFinding,
} from '../../ports/network-validations.ts'

const asked = { terminators: 10_100, links: 10_103, circuits: 10_118 } as const
const contentTypes = { terminator: 10_102, links: 10_105, circuits: 10_120, host: 10_121 } as const

/**
 * OpenZiti validations that Flotilla does not offer, with the type of response that OpenZiti's CLI
 * expects for each: terminators of SDKs, the data model, connections of identities, terminators of
 * edge routers, and dialers of controllers.
 */
const notOffered = notBuiltYet([
  [10_106, 10_107],
  [10_109, 10_110],
  [10_112, 10_113],
  [10_115, 10_116],
  [10_122, 10_123],
] as const)

/** Every OpenZiti validation, with the type of its response. */
export const validationResponseTypes: ReadonlyMap<number, number> = new Map<number, number>([
  [asked.terminators, 10_101],
  [asked.links, 10_104],
  [asked.circuits, 10_119],
  ...notOffered,
])

/** @throws {Problem} for a malformed or unsupported request, or without permission. */
export async function startValidation(
  validations: NetworkValidations,
  { contentType, body }: ChannelMessage,
): Promise<Validation> {
  switch (contentType) {
    case asked.terminators: {
      const request = read(() => fromBinary(ValidateAllTerminatorsSchema, body))
      return await validations.terminators({
        filter: request.terminatorsFilter,
        isFixing: request.fixInvalid,
        identitiesFilter: request.identitiesFilter,
        perServiceAndHost: request.expectedPerServiceAndHost,
        perHost: request.expectedPerHost,
      })
    }
    case asked.links:
      return await validations.links(read(() => fromBinary(ValidateRoutersSchema, body)).filter)
    case asked.circuits:
      return await validations.circuits(read(() => fromBinary(ValidateRoutersSchema, body)).filter)
    default:
      throw new Problem('COULD_NOT_VALIDATE', { detail: 'this validation is not offered here' })
  }
}

function read<T>(decode: () => T): T {
  try {
    return decode()
  } catch (error) {
    throw new Problem('COULD_NOT_PARSE_BODY', { cause: error })
  }
}

/** @param refusal reason why the validation was not started; '' if it was started. */
export function validationStartMessage(refusal: string, count: number): Uint8Array {
  const start = { success: refusal === '', message: refusal, count: BigInt(count) }
  return toBinary(ValidationStartSchema, create(ValidationStartSchema, start))
}

export function validationFindingMessage(finding: ValidationFinding): {
  readonly contentType: number
  readonly body: Uint8Array
} {
  switch (finding.kind) {
    case 'terminator':
      return { contentType: contentTypes.terminator, body: terminatorBody(finding) }
    case 'host': {
      const host = create(ValidatedHostSchema, finding)
      return { contentType: contentTypes.host, body: toBinary(ValidatedHostSchema, host) }
    }
    case 'links':
      return { contentType: contentTypes.links, body: linksBody(finding) }
    case 'circuits':
      return { contentType: contentTypes.circuits, body: circuitsBody(finding) }
  }
}

const terminatorStates = {
  valid: TerminatorStanding.VALID,
  unknown: TerminatorStanding.UNKNOWN,
  unknownBinding: TerminatorStanding.UNKNOWN_BINDING_THERE,
  unknownTerminator: TerminatorStanding.UNKNOWN_TERMINATOR_THERE,
  badState: TerminatorStanding.BAD_STATE_THERE,
} as const satisfies Record<ValidatedTerminator['state'], TerminatorStanding>

function terminatorBody(finding: ValidatedTerminator): Uint8Array {
  const { kind: _kind, createdAt, isFixed, state, ...rest } = finding
  const detail = create(ValidatedTerminatorDetailSchema, {
    ...rest,
    createDate: createdAt,
    fixed: isFixed,
    state: terminatorStates[state],
  })
  return toBinary(ValidatedTerminatorDetailSchema, detail)
}

function linksBody({ routerId, routerName, fault, links }: RouterLinkFindings): Uint8Array {
  const standing = (is: boolean): LinkStanding =>
    is ? LinkStanding.LINK_ESTABLISHED : LinkStanding.LINK_UNKNOWN
  const message = create(ValidatedRouterLinksSchema, {
    routerId,
    routerName,
    success: fault === null,
    message: fault ?? '',
    links: links.map(({ isKnown, isThere, messages, ...link }) => ({
      ...link,
      messages: [...messages],
      controllerState: standing(isKnown),
      routerState: standing(isThere),
    })),
  })
  return toBinary(ValidatedRouterLinksSchema, message)
}

function circuitsBody({
  routerId,
  routerName,
  fault,
  circuits,
}: RouterCircuitFindings): Uint8Array {
  const message = create(ValidatedRouterCircuitsSchema, {
    routerId,
    routerName,
    success: fault === null,
    message: fault ?? '',
    circuits: Object.fromEntries(circuits.map((circuit) => [circuit.circuitId, circuit])),
  })
  return toBinary(ValidatedRouterCircuitsSchema, message)
}
