import { fieldProblem } from '../../lib/problems.ts'
import type { ClusterView, MemberView } from '../../ports/cluster-view.ts'
import { responseWithoutEnvelope, emptyResponse } from '../http/responses/envelope.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import { leadershipTransferSchema, membersSchema } from './members-schema.ts'
import { emptyBodySchema } from '../schemas/envelope.ts'
import { findIgnoredFields } from '../schemas/request-body-validator.ts'
import { responseTimeLimits } from './response-time-limits.ts'
import { requestActor } from '../http/request-context.ts'
import { preferredLeaders } from './controller-view.ts'
import type { MembershipControl } from '../../ports/membership.ts'

interface ClusterOperationsDeps {
  readonly cluster: ClusterView
  readonly membership: MembershipControl
}

/** Operations that list the members of the cluster and transfer leadership. */
export function clusterOperations({ cluster, membership }: ClusterOperationsDeps): Operation[] {
  const common = { tag: 'cluster', apis: ['fabric'], permission: 'admin', success: 200 } as const
  return [
    {
      ...common,
      operationId: 'clusterListMembers',
      summary: 'List the members of the cluster',
      method: 'GET',
      path: '/cluster/list-members',
      needsNoState: true,
      response: { kind: 'bare', schema: membersSchema },
      handle: () => {
        const views = cluster.members()
        const preferred = preferredLeaders(views)
        const data = views.map((member) => ({
          id: member.id,
          address: addressForConsoles(member),
          ctrlAddress: member.address,
          voter: member.voter,
          leader: member.leader,
          connected: member.connected,
          version: member.version,
          readOnly: member.readOnly,
          preferredLeader: preferred.has(member.id),
        }))
        return responseWithoutEnvelope(JSON.stringify({ data }))
      },
    },
    operationWithBody({
      ...common,
      operationId: 'clusterTransferLeadership',
      summary: 'Transfer leadership to a member, by default the most up-to-date one',
      method: 'POST',
      path: '/cluster/transfer-leadership',
      needsNoState: true,
      answerMsMax: responseTimeLimits.transferMsMax,
      body: { schema: leadershipTransferSchema, isRequired: false },
      response: { kind: 'detail', schema: emptyBodySchema },
      refusals: [404, 500],
      handle: async (call, body) => {
        const to = body.newLeaderId || null
        const isLearner = cluster.members().some((member) => member.id === to && !member.voter)
        if (isLearner) throw fieldProblem('newLeaderId', 'must be the id of a voting member', to)
        await membership.transferLeadership(to, requestActor(call))
        return emptyResponse(findIgnoredFields(leadershipTransferSchema.schema, body))
      },
    }),
  ]
}

/**
 * Address of the management API of a member; if the API address is not known, `tls:` and the mesh
 * address. OpenZiti's console sends a request to this address of each member before it uses more
 * than one controller; the console would drop the port of an address such as `tls:host:port`.
 */
function addressForConsoles({ address, apiAddresses }: MemberView): string {
  const found = apiAddresses.find(({ api, url }) => api === 'edge-management' && URL.canParse(url))
  return found === undefined ? `tls:${address}` : new URL(found.url).origin
}
