import type { Call } from '../call.ts'
import { detailAnswer, emptyAnswer, listAnswer } from '../envelope.ts'
import type { Answer } from '../envelope.ts'
import { foundOrConfirmed } from '../not-found.ts'
import type { Operation } from '../operation.ts'
import type { ApiParts } from '../parts.ts'
import { failedServiceRequest, nothing, postureData } from '../schemas.ts'

/** As the API family writes a time that there is none of. */
const never = '0001-01-01T00:00:00.000Z'
const unreported = { postureCheckId: '', timedOut: false, lastUpdatedAt: never } as const

/** What is known of an identity that has reported nothing, as none can here. */
const noPostureData = {
  apiSessionPostureData: {},
  domain: { ...unreported, domain: '' },
  mac: { ...unreported, addresses: [] },
  os: { ...unreported, type: '', version: '', build: '' },
  processes: [],
} as const

/** What is known of the machines of an identity, and its second factor. */
export function identityPostureOperations(parts: ApiParts): Operation[] {
  const common = { tag: 'identities', apis: ['management'], success: 200 } as const
  const ofIdentity = (call: Call, answer: () => Answer): Answer | Promise<Answer> => {
    const id = call.param('id')
    return foundOrConfirmed(parts, call, `identity with id ${id}`, () =>
      parts.state.get('identity', id) === undefined ? null : answer(),
    )
  }
  return [
    {
      ...common,
      operationId: 'getIdentityPostureData',
      summary: 'Shows what the machines of an identity last reported of themselves',
      permission: 'identity.read',
      method: 'GET',
      path: '/identities/{id}/posture-data',
      response: { kind: 'detail', schema: postureData },
      refusals: [401, 404, 429, 503],
      handle: (call) => ofIdentity(call, () => detailAnswer(noPostureData)),
    },
    {
      ...common,
      operationId: 'getIdentityFailedServiceRequests',
      summary: 'Lists the sessions that an identity was lately refused because of posture checks',
      permission: 'identity.read',
      method: 'GET',
      path: '/identities/{id}/failed-service-requests',
      response: { kind: 'list', schema: failedServiceRequest },
      refusals: [401, 404, 429, 503],
      handle: (call) =>
        ofIdentity(call, () => listAnswer([], { limit: 0, offset: 0, totalCount: 0 }, [])),
    },
    {
      ...common,
      operationId: 'removeIdentityMfa',
      summary: 'Takes the second factor from an identity; none is as good as removed',
      permission: 'identity.update',
      method: 'DELETE',
      path: '/identities/{id}/mfa',
      response: { kind: 'detail', schema: nothing },
      refusals: [401, 404, 429, 503],
      handle: (call) => ofIdentity(call, () => emptyAnswer()),
    },
  ]
}
