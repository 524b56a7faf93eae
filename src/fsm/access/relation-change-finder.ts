import { fieldProblem } from '../../lib/problems.ts'
import type { PairChanges } from './access-difference.ts'
import {
  unorderedIdsSelectedByRoles,
  activePoliciesSelecting,
  type Policy,
  type RoleList,
} from '../records/roles.ts'
import type { State } from '../records/state.ts'
import {
  findRelationPolicy,
  relatedIds,
  type RelationSide,
  type RoleRelation,
  policyRolesForSide,
} from './role-relation.ts'

export const previewLimits = {
  /** Maximum number of records that the writes in one preview and their consequences may change. */
  previewWritesMax: 10_000,
  /**
   * Maximum cost of one preview; above that: 400 COULD_NOT_VALIDATE. Each ID that the preview reads
   * from an index or compares costs about one unit.
   */
  previewWorkMax: 4_000_000,
} as const

/** Units of work after which the event loop can do other work before the preview continues. */
const turnUnits = 2000
/**
 * Up to this number of records, the index finds the policies that select each record; for more
 * records, all policies are examined.
 */
const askedRecordsMax = 256

/** Counts the cost of one preview, and yields after a fixed amount, so that other work can run. */
export class PreviewCostCounter {
  #spent = 0
  #turnAt = turnUnits;

  /**
   * Adds to the cost.
   * @throws {Problem} COULD_NOT_VALIDATE once the total exceeds its limit.
   */
  *spend(units: number): Generator<void, void> {
    this.#spent += units
    // @guard preview-tells-or-costs--work
    if (this.#spent > previewLimits.previewWorkMax) {
      throw fieldProblem('changes', 'the preview costs too much; preview fewer changes at once')
    }
    if (this.#spent < this.#turnAt) return
    this.#turnAt = this.#spent + turnUnits
    yield
  }

  /** Calls `run` for each element; each call costs one unit. */
  *each<T>(all: Iterable<T>, run: (one: T) => void): Generator<void, void> {
    let count = 0
    for (const one of all) {
      run(one)
      count += 1
      if (count < turnUnits) continue
      yield* this.spend(count)
      count = 0
    }
    yield* this.spend(count)
  }
}

type Ids = ReturnType<typeof unorderedIdsSelectedByRoles>

/** All pairs of one element from the left set and one from the right set. */
interface Block {
  readonly count: number
  readonly pairs: () => { readonly left: readonly string[]; readonly other: readonly string[] }
}

interface Blocks {
  readonly given: Block[]
  readonly taken: Block[]
}

/**
 * A set of ids on the right side that policies grant, and the records on the left side that have
 * this grant.
 */
interface Token {
  readonly key: string
  readonly of: 'before' | 'after' | 'unchanged'
  readonly rights: ReadonlySet<string>
  readonly lefts: Ids
}

/** Records on the left side that have the same tokens. */
interface Group {
  readonly key: string
  readonly tokens: readonly Token[]
  readonly members: string[]
}

/** Ids by kind of the records that were created, deleted, or given other role attributes. */
type MovedIds = ReadonlyMap<string, ReadonlySet<string>>

/**
 * Finds the pairs that gain or lose a right of one relation because of the writes. Changed records
 * are compared one by one. For unchanged records only the changed policies matter, and unchanged
 * records that the same policies select are compared together.
 */
export class RelationChangeFinder {
  readonly #before: State
  readonly #after: State
  readonly #relation: RoleRelation
  readonly #work: PreviewCostCounter
  readonly #lefts: ReadonlySet<string>
  readonly #others: ReadonlySet<string>
  readonly #blocks: Blocks = { given: [], taken: [] }

  constructor(
    states: { readonly before: State; readonly after: State },
    relation: RoleRelation,
    moved: MovedIds,
    work: PreviewCostCounter,
  ) {
    this.#before = states.before
    this.#after = states.after
    this.#relation = relation
    this.#work = work
    this.#lefts = moved.get(relation.left.kind) ?? new Set()
    this.#others = moved.get(relation.other.kind) ?? new Set()
  }

  /**
   * Finds the pairs that gain or lose the right.
   * @param policies ids of the written policies; their kind must be the one that grants this
   * relation's right.
   */
  *judge(policies: Iterable<string>): Generator<void, readonly PairChanges[]> {
    const { left, other } = this.#relation
    for (const id of [...this.#lefts].sort()) yield* this.#judgeRecord(id, left, other)
    for (const id of [...this.#others].sort()) yield* this.#judgeRecord(id, other, left)
    yield* this.#judgePolicies([...policies].sort())
    return (['given', 'taken'] as const).map((change) =>
      changesOf(this.#relation, change, this.#blocks[change]),
    )
  }

  *#judgeRecord(id: string, own: RelationSide, to: RelationSide): Generator<void, void> {
    const isLeft = own === this.#relation.left
    // A pair whose two records both changed is counted only once, for its left record.
    const skipped: ReadonlySet<string> = isLeft ? new Set() : this.#lefts
    const side = (state: State): Ids => relatedIds(state, this.#relation, own, id, to)
    const [had, has] = [side(this.#before), side(this.#after)]
    for (const [change, from, without] of [
      ['given', has, had],
      ['taken', had, has],
    ] as const) {
      let count = 0
      yield* this.#work.each(from, (one) => {
        if (!without.has(one) && !skipped.has(one)) count += 1
      })
      if (count === 0) continue
      const pairs = (): ReturnType<Block['pairs']> => {
        const [all, minus] =
          change === 'given'
            ? [side(this.#after), side(this.#before)]
            : [side(this.#before), side(this.#after)]
        const ids = [...all].filter((one) => !minus.has(one) && !skipped.has(one)).sort()
        return isLeft ? { left: [id], other: ids } : { left: ids, other: [id] }
      }
      this.#blocks[change].push({ count, pairs })
    }
  }

  *#judgePolicies(ids: readonly string[]): Generator<void, void> {
    const changed = new Set(ids)
    const had = this.#policies(this.#before, ids)
    const has = this.#policies(this.#after, ids)
    if (had.length + has.length === 0) return
    const lefts = yield* this.#meantBy([...had, ...has], this.#relation.left, this.#lefts)
    const others = yield* this.#meantBy([...had, ...has], this.#relation.other, this.#others)
    if (lefts.size === 0 || others.size === 0) return
    const unchanged = yield* this.#overlapping(lefts, others, changed)
    const tokens: Token[] = []
    for (const [of, policies] of [
      ['before', had],
      ['after', has],
      ['unchanged', unchanged],
    ] as const) {
      yield* this.#addTokens(tokens, of, policies, others)
    }
    const groups = yield* this.#grouped(lefts, tokens)
    for (const group of groups) yield* this.#judgeGroup(group)
  }

  #policies(state: State, ids: readonly string[]): Policy[] {
    return ids.flatMap((id) => findRelationPolicy(state, this.#relation, id) ?? [])
  }

  /** Unchanged records that at least one of the policies selects. */
  *#meantBy(
    policies: readonly Policy[],
    side: RelationSide,
    moved: ReadonlySet<string>,
  ): Generator<void, ReadonlySet<string>> {
    const lists = policies.map((policy) => policyRolesForSide(side, policy))
    const found = new Set<string>()
    yield* this.#work.each(unorderedIdsSelectedByRoles(this.#before, side.kind, lists), (id) => {
      if (!moved.has(id)) found.add(id)
    })
    return found
  }

  /**
   * Unchanged policies that may select records on both sides. A pair that such a policy grants is
   * neither gained nor lost.
   */
  *#overlapping(
    lefts: ReadonlySet<string>,
    others: ReadonlySet<string>,
    changed: ReadonlySet<string>,
  ): Generator<void, readonly Policy[]> {
    const { left, other, policyKind } = this.#relation
    const table = this.#before.table(policyKind)
    const [few, { kind, field }] = lefts.size < others.size ? [lefts, left] : [others, other]
    const found = new Set<string>()
    if (few.size > askedRecordsMax) for (const id of table.ids) found.add(id)
    else {
      for (const id of few) {
        const record = this.#before.get(kind, id)
        if (record === undefined) continue
        const policies = activePoliciesSelecting<Policy>(table, field, record)
        yield* this.#work.spend(policies.length + 1)
        for (const policy of policies) found.add(policy.id)
      }
    }
    for (const id of changed) found.delete(id)
    yield* this.#work.spend(found.size)
    return this.#policies(this.#before, [...found].sort())
  }

  /**
   * Adds at most one token for each group of policies that have the same role list for the right
   * side.
   */
  *#addTokens(
    tokens: Token[],
    of: Token['of'],
    policies: readonly Policy[],
    others: ReadonlySet<string>,
  ): Generator<void, void> {
    const { left, other } = this.#relation
    const byRoles = Map.groupBy(policies, (policy) => keyOf(policyRolesForSide(other, policy)))
    for (const [key, same] of [...byRoles].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const [first] = same
      if (first === undefined) continue
      const all = unorderedIdsSelectedByRoles(this.#before, other.kind, [
        policyRolesForSide(other, first),
      ])
      const rights = new Set<string>()
      yield* this.#work.each(...both(all, others, (id) => rights.add(id)))
      if (rights.size === 0) continue
      const lists = same.map((policy) => policyRolesForSide(left, policy))
      const lefts = unorderedIdsSelectedByRoles(this.#before, left.kind, lists)
      yield* this.#work.spend(lefts instanceof Set ? lefts.size : 1)
      if (lefts.size > 0) tokens.push({ key: `${of} ${key}`, of, rights, lefts })
    }
  }

  /**
   * Splits the groups of left records until each token (a set of right ids with the left records
   * that have this grant) covers only whole groups.
   */
  *#grouped(
    lefts: ReadonlySet<string>,
    tokens: readonly Token[],
  ): Generator<void, readonly Group[]> {
    const all = this.#before.table(this.#relation.left.kind).ids
    const shared = tokens.filter((token) => token.lefts === all)
    const ofGroup: (readonly Token[])[] = [shared]
    const groupOf = new Map<string, number>()
    yield* this.#work.each(lefts, (id) => groupOf.set(id, 0))
    for (const token of tokens) {
      if (token.lefts === all) continue
      const next = new Map<number, number>()
      const split = (id: string): void => {
        const group = groupOf.get(id) ?? 0
        let part = next.get(group)
        if (part === undefined) {
          part = ofGroup.length
          ofGroup.push([...(ofGroup[group] ?? []), token])
          next.set(group, part)
        }
        groupOf.set(id, part)
      }
      yield* this.#work.each(...both(token.lefts, lefts, split))
    }
    const members = new Map<number, string[]>()
    yield* this.#work.each(groupOf, ([id, group]) => {
      const known = members.get(group)
      if (known === undefined) members.set(group, [id])
      else known.push(id)
    })
    return [...members]
      .map(([group, ids]): Group => {
        const own = ofGroup[group] ?? []
        return { key: own.map(({ key }) => key).join('\n'), tokens: own, members: ids }
      })
      .sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  *#judgeGroup({ tokens, members }: Group): Generator<void, void> {
    yield* this.#work.spend(1 + tokens.reduce((sum, { rights }) => sum + rights.size, 0))
    const granted = (of: Token['of']): Set<string> => {
      const found = new Set<string>()
      for (const token of tokens) {
        if (token.of === of) for (const id of token.rights) found.add(id)
      }
      return found
    }
    const [had, has, keeps] = [granted('before'), granted('after'), granted('unchanged')]
    for (const [change, from, without] of [
      ['given', has, had],
      ['taken', had, has],
    ] as const) {
      const other = [...from].filter((id) => !without.has(id) && !keeps.has(id))
      if (other.length === 0) continue
      const pairs = (): ReturnType<Block['pairs']> => ({
        left: [...members].sort(),
        other: [...other].sort(),
      })
      this.#blocks[change].push({ count: members.length * other.length, pairs })
    }
  }
}

function keyOf({ roles, semantic }: RoleList): string {
  return `${semantic} ${roles.join(' ')}`
}

/** The common elements of two sets; iterates over the smaller one. */
function both(
  a: Ids,
  b: ReadonlySet<string>,
  run: (id: string) => unknown,
): [all: Iterable<string>, run: (id: string) => void] {
  const [few, many]: [Iterable<string>, { has(id: string): boolean }] =
    a.size < b.size ? [a, b] : [b, a]
  return [
    few,
    (id) => {
      if (many.has(id)) run(id)
    },
  ]
}

function changesOf(
  { right }: RoleRelation,
  change: PairChanges['change'],
  blocks: readonly Block[],
): PairChanges {
  const page: PairChanges['page'] = (offset, limit) => {
    const found: (readonly [string, string])[] = []
    let skip = offset
    for (const block of blocks) {
      if (found.length >= limit) break
      if (skip >= block.count) {
        skip -= block.count
        continue
      }
      const { left, other } = block.pairs()
      for (let at = skip; at < block.count && found.length < limit; at += 1) {
        const [one, two] = [left[Math.floor(at / other.length)], other[at % other.length]]
        if (one !== undefined && two !== undefined) found.push([one, two])
      }
      skip = 0
    }
    return found
  }
  return { right, change, count: blocks.reduce((sum, { count }) => sum + count, 0), page }
}
