import { type Random, seededRandom } from '../../src/lib/random.ts'
import type { Operation, Scalar } from './history.ts'
import { appendList, type Model, register, uniqueSet } from './models.ts'

export type Subject = 'register' | 'set' | 'list'
export const subjects: readonly Subject[] = ['register', 'set', 'list']

export function modelOf(subject: Subject): Model {
  return { register, set: uniqueSet, list: appendList }[subject]()
}

export interface Shape {
  readonly operations: number
  readonly processes: number
  readonly keys: number
  readonly failedPerMille: number
  readonly unknownPerMille: number
}

type Draft = { -readonly [F in keyof Operation]: Operation[F] } & {
  /** Time at which the operation takes effect; Infinity: never. */
  effectAt: number
}

/**
 * A linearizable history with its true log indexes. Processes perform one operation after the
 * other; operations of different processes overlap, and each takes effect at one moment between
 * call and return. Half of the operations with an unknown outcome take effect, some of them much
 * later. No value is written twice.
 */
export function rightHistory(subject: Subject, shape: Shape, seed: number): Operation[] {
  const random = seededRandom(seed)
  const drafts = Array.from({ length: shape.processes }, (_, process) =>
    draftsOf(process, shape, random),
  ).flat()
  const objects = new Map<string, Scalar[]>()
  let index = 0
  drafts.sort((a, b) => (a.effectAt < b.effectAt ? -1 : a.effectAt > b.effectAt ? 1 : 0))
  for (const [n, draft] of drafts.entries()) {
    const object = objects.get(draft.key) ?? []
    objects.set(draft.key, object)
    ask(subject, draft, n + 1, object, random)
    if (draft.effectAt === Infinity) continue
    if (draft.kind !== 'read') index += 1
    const result = answer(subject, draft, object)
    if (draft.outcome !== 'ok') continue
    draft.index = index
    draft.result = result
  }
  return drafts
    .map(({ effectAt: _, ...operation }) => operation)
    .sort((a, b) => a.invokedAt - b.invokedAt)
}

function draftsOf(process: number, shape: Shape, random: Random): Draft[] {
  let at = random.next()
  return Array.from({ length: Math.ceil(shape.operations / shape.processes) }, () => {
    const invokedAt = at + random.next() * 3
    let effectAt = invokedAt + random.next() * 5
    const endedAt = effectAt + random.next() * 5
    at = endedAt
    const chance = random.integer(0, 999)
    const outcome =
      chance < shape.failedPerMille
        ? 'failed'
        : chance < shape.failedPerMille + shape.unknownPerMille
          ? 'unknown'
          : 'ok'
    if (outcome === 'unknown') effectAt += random.next() * 100
    if (outcome === 'failed' || (outcome === 'unknown' && random.next() < 0.5)) effectAt = Infinity
    const returnedAt = outcome === 'unknown' ? Infinity : endedAt
    const key = `${random.integer(1, shape.keys)}`
    const asked = { process, key, kind: '', argument: null, result: null, index: null }
    return { ...asked, outcome, invokedAt, returnedAt, effectAt }
  })
}

/**
 * Chooses the operation when it takes effect, so that about half of the compare-and-sets succeed.
 */
function ask(
  subject: Subject,
  draft: Draft,
  unique: number,
  object: Scalar[],
  random: Random,
): void {
  const changes = random.next() < 0.5
  draft.kind = 'read'
  if (!changes) return
  draft.argument = unique
  if (subject !== 'register') draft.kind = subject === 'set' ? 'add' : 'append'
  else if (random.next() < 0.5) draft.kind = 'write'
  else {
    draft.kind = 'cas'
    const from = random.next() < 0.5 ? (object[0] ?? null) : random.integer(0, unique - 1)
    draft.argument = [from, unique]
  }
}

/**
 * The effect of each kind of operation, implemented again in the simplest way, to check the models.
 */
export function answer(
  subject: Subject,
  { kind, argument }: Pick<Operation, 'kind' | 'argument'>,
  object: Scalar[],
): Operation['result'] {
  if (kind === 'read') return subject === 'register' ? (object[0] ?? null) : [...object]
  if (kind === 'add' || kind === 'append') object.push(argument as Scalar)
  if (kind === 'write') object[0] = argument as Scalar
  if (kind !== 'cas') return null
  const [from, to] = argument as readonly [Scalar, Scalar]
  if ((object[0] ?? null) !== from) return false
  object[0] = to
  return true
}
