import { create, toBinary } from '@bufbuild/protobuf'
import { CommandKind, CommandSchema, EntityWriteSchema } from '../proto/gen/command_pb.ts'
import { permissiveSecondaryRules } from '../src/entities/parts/auth-policy-factors.ts'
import { findEntity } from '../src/entities/registry.ts'
import { normalizeBody } from '../src/entities/normalize-body.ts'
import { applyLogEntry } from '../src/fsm/apply-log-entry.ts'
import { canonicalJson, type Json } from '../src/lib/text/canonical-json.ts'
import type { Actor } from '../src/ports/actor.ts'
import type { Entry } from '../src/raft/types.ts'
import { ClusterState } from '../src/fsm/access/cluster-state.ts'

export interface ApplyResult {
  readonly entries: number
  readonly seconds: number
  readonly perSecond: number
  readonly entitiesDigest: string
}

/** An administrator with a session; applying an entry checks the actor's permissions. */
const actor: Actor = {
  case: 'session',
  value: {
    identityId: 'admin',
    sessionId: 'session',
    address: '127.0.0.1',
    permission: 'service.create',
    signerId: '',
    signerRevision: '0',
  },
}

function stateWithSession(): ClusterState {
  const state = new ClusterState()
  const base = { createdAt: 1, updatedAt: 1, revision: 1 }
  const secondary = permissiveSecondaryRules as unknown as Json
  state.put('authPolicy', { ...base, id: 'default', name: 'Default', secondary })
  const rights = { isAdmin: true, authPolicyId: 'default' }
  state.put('identity', { ...base, id: 'admin', name: 'Default Admin', ...rights })
  state.put('apiSession', {
    ...base,
    id: 'session',
    identityId: 'admin',
    signerId: '',
    lastActivityAt: 1,
  })
  return state
}

const storeId = new Uint8Array(16).fill(7)

/**
 * A log entry that creates a service, encoded as a controller does: with an origin, about 300
 * bytes.
 */
function createServiceEntry(index: number): Entry {
  const { fields } = normalizeBody(findEntity('service'), 'create', {
    name: `bench-service-${index}`,
    encryptionRequired: true,
    roleAttributes: ['bench', `group-${index % 100}`],
  })
  const id = `svc${(index * 7919) % 1_000_003}-${index}`
  const json = new TextEncoder().encode(canonicalJson(fields))
  const payload = toBinary(
    EntityWriteSchema,
    create(EntityWriteSchema, { entity: 'service', id, json }),
  )
  const sequence = BigInt(index)
  const command = create(CommandSchema, {
    origin: { storeId, boot: 1n, sequence, lowestOutstanding: sequence },
    actor,
    kind: CommandKind.ENTITY_CREATE,
    level: 1,
    payload,
  })
  const data = toBinary(CommandSchema, command)
  return { index, term: 1, timeMs: 1_700_000_000_000 + index, type: 'command', data }
}

/**
 * Applies `count` entries, which are created before the measurement, in one thread. Removes the
 * changes from the state in batches, as write-behind does.
 */
export function benchApply(count: number): ApplyResult {
  const entries = Array.from({ length: count }, (_, i) => createServiceEntry(i + 1))
  const state = stateWithSession()
  const started = performance.now()
  for (const entry of entries) {
    const { outcome } = applyLogEntry(state, entry)
    if (outcome?.ok !== true) throw new Error(`entry ${entry.index} was refused`)
    if (state.dirtyCharacters > 1024 * 1024) state.takeDirty()
  }
  const seconds = (performance.now() - started) / 1000
  const entitiesDigest = state.entitiesDigest()
  return { entries: count, seconds, perSecond: Math.round(count / seconds), entitiesDigest }
}

if (import.meta.main) {
  benchApply(20_000)
  for (const count of [50_000, 200_000]) {
    const { seconds, perSecond } = benchApply(count)
    console.log(`apply createService: ${count} entries in ${seconds.toFixed(2)} s, ${perSecond}/s`)
  }
}
