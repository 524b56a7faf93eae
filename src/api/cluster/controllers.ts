import { defineEntity } from '../../entities/define-entity.ts'
import { booleanField, nameField, textField, timestampField } from '../../entities/fields.ts'
import { digestLanes } from '../../fsm/records/digest.ts'
import { noQueryLinks } from '../../fsm/query/evaluate.ts'
import { RecordLister } from '../../fsm/query/list.ts'
import { symbolNames } from '../../fsm/query/symbols.ts'
import { Table } from '../../fsm/records/table.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { ClusterView, MemberView } from '../../ports/cluster-view.ts'
import { listResponse } from '../http/responses/envelope.ts'
import { canCallOperation } from '../../auth/principal/permissions.ts'
import type { RequestContext } from '../http/request-context.ts'
import type { Operation } from '../http/operation.ts'
import { controllerView, sha1Fingerprint, preferredLeaders } from './controller-view.ts'
import { listQueryParameters, readListQuery } from '../http/query-parameters.ts'
import { controllerSchema } from '../schemas/about.ts'

interface ControllerOperationsDeps {
  readonly cluster: ClusterView
}

const fields = {
  name: nameField(),
  ctrlAddress: textField(),
  certPem: textField(),
  fingerprint: textField(),
  isOnline: booleanField(),
  isPreferredLeader: booleanField(),
  lastJoinedAt: timestampField(),
}
const shared = { name: 'controller', plural: 'controllers', operations: {}, fields } as const
const symbols = [
  'name',
  'certPem',
  'fingerprint',
  'isOnline',
  'isPreferredLeader',
  'lastJoinedAt',
] as const

/**
 * Descriptors for filters of the list. The rows are not stored; they describe the current members
 * as this controller sees them. In this list, only the management API shows the controllers' mesh
 * addresses, and only to callers who may read controllers. Other callers cannot filter the list by
 * these addresses.
 */
const clientRows = defineEntity({ ...shared, symbols })
const meshRows = defineEntity({ ...shared, symbols: [...symbols, 'ctrlAddress'] })

/** Evaluates list queries without links between records, because controllers have no sub-lists. */
const lister = new RecordLister(noQueryLinks)

export function controllerOperations({ cluster }: ControllerOperationsDeps): Operation[] {
  const common = {
    operationId: 'listControllers',
    summary: 'List the controllers of the cluster with their addresses',
    tag: 'controllers',
    method: 'GET',
    path: '/controllers',
    query: listQueryParameters,
    success: 200,
    response: { kind: 'list', schema: controllerSchema },
    handle: (call) => {
      const members = new Map(cluster.members().map((member) => [member.id, member]))
      const preferred = preferredLeaders([...members.values()])
      const seesMesh = isShownMesh(call)
      const rows = seesMesh ? meshRows : clientRows
      const table = new Table(rows)
      for (const member of members.values()) {
        table.change(member.id, {
          record: recordOf(member, preferred.has(member.id)),
          lanes: noLanes,
        })
      }
      const found = lister.list(table, readListQuery(call), null)
      const details = found.records.flatMap(({ id }) => {
        const member = members.get(id)
        const shows = { api: call.api, seesMesh, isPreferredLeader: preferred.has(id) }
        return member === undefined ? [] : [controllerView(member, shows)]
      })
      const { limit, offset, totalCount } = found
      return listResponse(details, { limit, offset, totalCount }, symbolNames(rows))
    },
  } as const satisfies Omit<Operation, 'apis' | 'permission'>
  return [{ ...common, apis: ['client', 'management'], permission: 'session' }]
}

function isShownMesh(call: RequestContext): boolean {
  const { caller, api } = call
  return (
    api === 'management' && caller !== null && canCallOperation(caller, 'controllers.read', call)
  )
}

/** State digests do not include the rows, because the rows are not replicated. */
const noLanes = digestLanes('', '')

function recordOf(member: MemberView, isPreferredLeader: boolean): EntityRecord {
  return {
    id: member.id,
    createdAt: member.startedAtMs,
    updatedAt: member.startedAtMs,
    revision: 0,
    tags: {},
    name: member.id,
    ctrlAddress: member.address,
    certPem: member.certificatePem,
    fingerprint: sha1Fingerprint(member.certificatePem),
    isOnline: member.connected,
    isPreferredLeader,
    lastJoinedAt: member.startedAtMs,
  }
}
