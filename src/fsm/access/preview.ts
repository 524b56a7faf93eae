import { create } from '@bufbuild/protobuf'
import { CommandKind, EntityWriteSchema } from '../../../proto/gen/command_pb.ts'
import type { KindName } from '../../entities/kind-records.ts'
import { canonicalJson } from '../../lib/text/canonical-json.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type {
  AccessDifference,
  AccessPreview,
  PostureCheckChanges,
  PairChanges,
  PreviewCaller,
  PreviewedWrite,
} from './access-difference.ts'
import type { RecordChange } from '../../ports/change-feed.ts'
import type { CommandContext } from '../apply/command-context.ts'
import { applyBatchStep } from '../apply/entity.ts'
import {
  isEffectivePolicy,
  recordRoleAttributes,
  activePoliciesSelecting,
} from '../records/roles.ts'
import { type State, TooManyWritesError } from '../records/state.ts'
import { isSameStringList } from './access-changes.ts'
import { findPolicyPostureChecks } from './policy-posture-checks.ts'
import {
  previewLimits,
  PreviewCostCounter,
  RelationChangeFinder,
} from './relation-change-finder.ts'
import { roleRelations } from './role-relation.ts'

/**
 * Kinds of records that are the two sides of rights. `policyKinds` are the policies that grant
 * these rights.
 */
const recordKinds = ['identity', 'service', 'edgeRouter'] as const
const policyKinds = ['servicePolicy', 'edgeRouterPolicy', 'serviceEdgeRouterPolicy'] as const
const checkKind = 'postureCheck'

const commandKinds = {
  create: CommandKind.ENTITY_CREATE,
  replace: CommandKind.ENTITY_REPLACE,
  patch: CommandKind.ENTITY_PATCH,
  delete: CommandKind.ENTITY_DELETE,
} as const

const utf8 = new TextEncoder()

/**
 * Applies writes to a layer on top of the state, with the code of the apply step, and returns their
 * effect on access. The state itself does not change.
 * @param current returns the current state, which a restore may replace.
 */
export function previewAccess(
  current: () => State,
  writes: readonly PreviewedWrite[],
  caller: PreviewCaller,
  rulesOf: CommandContext['rulesOf'],
): AccessPreview {
  const before = current()
  const after = before.layer(previewLimits.previewWritesMax)
  for (const kind of [...recordKinds, ...policyKinds, checkKind] as const) {
    after.changes.watch(after.table(kind).entity.name)
  }
  const context = { ...placeIn(before), ...authorityOf(caller), touched: [], rulesOf }
  try {
    for (const [at, { mode, entity, id, fields }] of writes.entries()) {
      const json = utf8.encode(canonicalJson(fields))
      const write = create(EntityWriteSchema, { entity, id, json })
      const outcome = applyBatchStep(after, commandKinds[mode], write, context)
      if (!outcome.ok) return { outcome: 'refused', at, refusal: outcome }
    }
  } catch (error) {
    if (error instanceof TooManyWritesError) return { outcome: 'tooMany' }
    throw error
  }
  return { outcome: 'judged', difference: differenceOf(current, before, after) }
}

/** Position of the preview: the index after the last applied entry, and the current log time. */
function placeIn({
  position,
  logTimeMs,
}: State): Pick<CommandContext, 'index' | 'logTimeMs' | 'sessionId' | 'routerId'> {
  return { index: position.index + 1, logTimeMs, sessionId: '', routerId: '' }
}

function authorityOf({
  isAdmin,
  permissions,
}: PreviewCaller): Pick<CommandContext, 'authority' | 'held'> {
  // @guard preview-tells-or-costs--reach
  return { authority: isAdmin ? 'full' : 'limited', held: permissions }
}

function* differenceOf(
  current: () => State,
  before: State,
  after: State,
): Generator<void, AccessDifference | null> {
  const known = versionsOf(before)
  const hasMoved = (): boolean =>
    current() !== before || !isSameStringList(versionsOf(before), known)
  const changes = after.changes.take(after.tables)
  const written = after.takeHistory()
  const moved = new Map(
    recordKinds.map((kind) => [kind, movedIds(before, after, kind, idsOf(after, kind, changes))]),
  )
  const work = new PreviewCostCounter()
  const pairs: PairChanges[] = []
  for (const relation of roleRelations) {
    const written = idsOf(after, relation.policyKind, changes)
    const judging = new RelationChangeFinder({ before, after }, relation, moved, work).judge(
      written,
    )
    for (let step = judging.next(); ; step = judging.next()) {
      if (step.done === true) {
        pairs.push(...step.value)
        break
      }
      yield
      // Records have changed since the work began, so its result would be wrong; the caller must
      // start over.
      if (hasMoved()) return null
    }
  }
  const checks = checkChanges(before, after, changes)
  return {
    pairs,
    checks,
    changes: written,
    record: (kind, id) => after.get(kind, id) ?? before.get(kind, id),
    isNew: (kind, id) => before.get(kind, id) === undefined,
  }
}

/** Versions that change with every write of a record that affects a right. */
function versionsOf(state: State): readonly string[] {
  return [
    ...recordKinds.map((kind) => String(state.table(kind).matchVersion)),
    ...([...policyKinds, checkKind] as const).map((kind) => String(state.table(kind).version)),
  ]
}

function idsOf(state: State, kind: KindName, changes: readonly RecordChange[]): string[] {
  const table = state.table(kind).entity.name
  return changes.flatMap((change) => (change.kind === table ? [change.id] : []))
}

/** Ids of the records of this kind that were created, deleted, or given other role attributes. */
function movedIds(
  before: State,
  after: State,
  kind: KindName,
  ids: readonly string[],
): ReadonlySet<string> {
  const moved = ids.filter((id) => {
    const [old, now] = [before.get(kind, id), after.get(kind, id)]
    if (old === undefined || now === undefined) return old !== now
    return !isSameStringList(recordRoleAttributes(old), recordRoleAttributes(now))
  })
  return new Set(moved)
}

/**
 * Service policies that exist before and after the writes, if the writes change which posture
 * checks they require, or what these checks require.
 */
function checkChanges(
  before: State,
  after: State,
  changes: readonly RecordChange[],
): readonly PostureCheckChanges[] {
  const written = new Set(idsOf(after, checkKind, changes))
  const policies = new Set(idsOf(after, 'servicePolicy', changes))
  for (const state of [before, after]) {
    for (const id of written) {
      const check = state.get(checkKind, id)
      if (check === undefined) continue
      const table = state.table('servicePolicy')
      for (const policy of activePoliciesSelecting(table, 'postureCheckRoles', check)) {
        policies.add(policy.id)
      }
    }
  }
  return [...policies].sort().flatMap((policyId) => {
    const [old, now] = [before, after].map((state) => {
      const policy = state.get('servicePolicy', policyId)
      return policy === undefined || !isEffectivePolicy(policy)
        ? null
        : findPolicyPostureChecks(state, policy)
    })
    if (old === null || old === undefined || now === null || now === undefined) return []
    const given = without(now, old)
    const taken = without(old, now)
    const kept = now.filter(({ id }) => written.has(id) && !given.includes(id))
    const others = kept.filter((check) =>
      asksElse(
        old.find(({ id }) => id === check.id),
        check,
      ),
    )
    if (given.length + taken.length + others.length === 0) return []
    return [{ policyId, given, taken, written: others.map(({ id }) => id) }]
  })
}

function without(all: readonly EntityRecord[], others: readonly EntityRecord[]): string[] {
  const known = new Set(others.map(({ id }) => id))
  return all.flatMap(({ id }) => (known.has(id) ? [] : [id]))
}

/** Fields that do not change what a check requires. */
const aside: ReadonlySet<string> = new Set([
  'name',
  'tags',
  'roleAttributes',
  'updatedAt',
  'revision',
])

function asksElse(old: EntityRecord | undefined, now: EntityRecord): boolean {
  const bare = (record: EntityRecord): string =>
    canonicalJson(Object.fromEntries(Object.entries(record).filter(([name]) => !aside.has(name))))
  return old === undefined || bare(old) !== bare(now)
}
