import type { Entity, RequestMode } from '../../entities/define-entity.ts'
import { normalizeBody } from '../../entities/normalize-body.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import type { WritePreparer } from './write-preparer.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'

interface TerminatorPreparerDeps {
  readonly state: StateView
  readonly reads: LinearizableReads
}

/** Names of the body members that can be set only when a terminator is created. */
interface Names {
  readonly instanceId: string
  readonly instanceSecret: string
  readonly hostId: string | null
}

const edgeNames: Names = { instanceId: 'identity', instanceSecret: 'identitySecret', hostId: null }
const fabricNames: Names = {
  instanceId: 'instanceId',
  instanceSecret: 'instanceSecret',
  hostId: 'hostId',
}

type TerminatorKind = 'terminator' | 'fabricTerminator'

export function terminatorPreparer(
  deps: TerminatorPreparerDeps,
  entity: Entity<TerminatorKind>,
): WritePreparer {
  const names = entity.name === 'fabricTerminator' ? fabricNames : edgeNames
  return async (_call, mode, body, id) => {
    const { fields, ignoredFields } = normalizeBody(entity, mode, body)
    const made = { ...fields, ...referencesIn(mode, body), ...instanceIn(names, mode, body) }
    if (made['binding'] !== '') return { fields: made, ignoredFields }
    const address = made['address'] ?? (await addressOf(deps, entity.name, id))
    return { fields: { ...made, binding: bindingFor(address) }, ignoredFields }
  }
}

/**
 * The service and router of a terminator. The service is fixed at creation; a different service in
 * a later write is ignored.
 */
function referencesIn(mode: RequestMode, { service, router }: JsonObject): JsonObject {
  return {
    ...(mode === 'create' ? { serviceId: service ?? '' } : {}),
    ...(mode === 'patch' && typeof router !== 'string' ? {} : { routerId: router ?? '' }),
  }
}

function instanceIn(names: Names, mode: RequestMode, body: JsonObject): JsonObject {
  if (mode !== 'create') return {}
  const fields: Record<string, Json> = {}
  for (const [field, name] of Object.entries(names) as [string, string | null][]) {
    fields[field] = name === null ? '' : (body[name] ?? '')
  }
  return fields
}

async function addressOf(
  deps: TerminatorPreparerDeps,
  kind: TerminatorKind,
  id: string,
): Promise<Json> {
  const known = await deps.reads.latest(() => deps.state.get(kind, id))
  return known?.address ?? ''
}

function bindingFor(address: Json): string {
  return typeof address === 'string' && address.startsWith('udp:') ? 'udp' : 'transport'
}
