import { X509Certificate } from 'node:crypto'
import { defineEntity } from '../../../entities/define.ts'
import { boolean, nameText, text, timestamp } from '../../../entities/fields.ts'
import { lanesOf } from '../../../fsm/digest.ts'
import { noLinks } from '../../../fsm/query/evaluate.ts'
import { Lister } from '../../../fsm/query/list.ts'
import { symbolNames } from '../../../fsm/query/symbols.ts'
import { Table } from '../../../fsm/table.ts'
import type { EntityRecord } from '../../../lib/entity-record.ts'
import type { MemberView } from '../../../ports/cluster-view.ts'
import { listAnswer, timeText } from '../../answers/envelope.ts'
import { mayCall } from '../../auth/permissions.ts'
import type { RequestContext } from '../../call.ts'
import type { ApiName, Operation } from '../../operation.ts'
import type { ApiParts } from '../../parts.ts'
import { preferredLeaders } from '../../duties/preferred-leader.ts'
import { listParameters, listQueryOf } from '../../answers/query-parameters.ts'
import { controller } from '../../schemas/about.ts'

const fields = {
  name: nameText(),
  ctrlAddress: text(),
  certPem: text(),
  fingerprint: text(),
  isOnline: boolean(),
  isPreferredLeader: boolean(),
  lastJoinedAt: timestamp(),
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
 * What a filter on the list may use. The rows are not stored: they are what the cluster looks like
 * from here, now. How controllers reach each other is shown on the management API alone, to callers
 * who may read controllers; the rows of all others can not be filtered by it either.
 */
const clientRows = defineEntity({ ...shared, symbols })
const meshRows = defineEntity({ ...shared, symbols: [...symbols, 'ctrlAddress'] })

/** Rows have no sub-lists. */
const lister = new Lister(noLinks)

export function controllerOperations({ cluster }: ApiParts): Operation[] {
  const common = {
    operationId: 'listControllers',
    summary: 'List the controllers of the cluster with their addresses',
    tag: 'controllers',
    method: 'GET',
    path: '/controllers',
    query: listParameters,
    success: 200,
    response: { kind: 'list', schema: controller },
    refusals: [400, 401, 429, 503],
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
      const found = lister.list(table, listQueryOf(call), null)
      const details = found.records.flatMap(({ id }) => {
        const member = members.get(id)
        const shows = { api: call.api, seesMesh, isPreferredLeader: preferred.has(id) }
        return member === undefined ? [] : [viewOf(member, shows)]
      })
      const { limit, offset, totalCount } = found
      return listAnswer(details, { limit, offset, totalCount }, symbolNames(rows))
    },
  } as const satisfies Omit<Operation, 'apis' | 'permission'>
  return [{ ...common, apis: ['client', 'management'], permission: 'session' }]
}

function isShownMesh(call: RequestContext): boolean {
  const { caller, api } = call
  return api === 'management' && caller !== null && mayCall(caller, 'controllers.read', call)
}

/** Rows of one answer take part in no digest. */
const noLanes = lanesOf('', '')

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
    fingerprint: fingerprintOf(member.certificatePem),
    isOnline: member.connected,
    isPreferredLeader,
    lastJoinedAt: member.startedAtMs,
  }
}

interface Shows {
  readonly api: ApiName
  readonly seesMesh: boolean
  readonly isPreferredLeader: boolean
}

function viewOf(
  member: MemberView,
  { api, seesMesh, isPreferredLeader }: Shows,
): Record<string, unknown> {
  const startedAt = timeText(member.startedAtMs)
  return {
    _links: { self: { href: `./controllers/${member.id}` } },
    apiAddresses: addressesOf(member, api),
    certPem: member.certificatePem,
    createdAt: startedAt,
    ...(seesMesh ? { ctrlAddress: member.address } : {}),
    fingerprint: fingerprintOf(member.certificatePem),
    id: member.id,
    isOnline: member.connected,
    isPreferredLeader,
    lastJoinedAt: startedAt,
    name: member.id,
    tags: {},
    updatedAt: startedAt,
  }
}

const clientAddresses = new Set(['edge-client', 'edge-oidc'])

function addressesOf(
  member: MemberView,
  api: ApiName,
): Record<string, { url: string; version: string }[]> {
  const addresses: Record<string, { url: string; version: string }[]> = {}
  for (const { api: name, url, version } of member.apiAddresses) {
    if (api === 'client' && !clientAddresses.has(name)) continue
    const known = (addresses[name] ??= [])
    known.push({ url, version })
  }
  return addresses
}

/** SHA-1 in hex, as this API family shows it: a name to look up by, nothing to trust. */
function fingerprintOf(pem: string): string {
  const known = fingerprints.get(pem)
  if (known !== undefined) return known
  if (fingerprints.size >= FINGERPRINTS_MAX) fingerprints.clear()
  const made = computeFingerprint(pem)
  fingerprints.set(pem, made)
  return made
}

function computeFingerprint(pem: string): string {
  try {
    return new X509Certificate(pem).fingerprint.replaceAll(':', '').toLowerCase()
  } catch {
    // A member whose certificate is not known yet.
    return ''
  }
}

/** A pure function's results; parsing a certificate takes longer than the rest of the answer. */
const fingerprints = new Map<string, string>()
const FINGERPRINTS_MAX = 64
